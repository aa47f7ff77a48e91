"""The page that compares the runs of a sweep."""

COMPARISON = r"""
{% from "pieces" import arrow, draw, head, table as tabled, tag with context %}
{{ head(table.title, style, script) }}
<body>
<header>
{% set open_rows = rows | selectattr("runs") | selectattr("unprotected") | map(attribute="row") | list %}
{% if open_rows %}
<p class="banner" role="note"><strong>No guarantee:</strong> {{ open_rows[:6] | join("; ") }}{{ "; and others" if open_rows | length > 6 }} (ε = ∞).</p>
{% endif %}
<h1>{{ table.title }}</h1>
<p>{{ runs | length }} runs{% if table.failures %}, of which {{ table.failures | length }} failed{% endif %}.
Choosing among runs by their results costs privacy beyond each run's own ε.</p>
</header>
<main>
<section id="rows">
<h2>Rows</h2>
{% call tabled("Means over the runs of each row", ["row", "method", "ε", "parties", "runs", "failed", "accuracy ↑", "last FID ↓", "tokens", "time"]
  + (["bytes to a party", "bytes from a party"] if table.traffic else []) + data_sets) %}
{% for row in rows %}
<tr><th scope="row">{{ row.row }}</th><td>{{ row.methods | join(", ") or "–" }}</td>
<td>{% for value in row.epsilons %}{{ value | epsilon }}{{ ", " if not loop.last }}{% else %}–{% endfor %}{{ ": no guarantee" if row.unprotected }}</td>
<td>{{ row.parties | join(", ") or "–" }}</td><td>{{ row.runs }}</td><td>{{ row.failed }}</td>
<td>{% if row.mean is none %}–{% else %}{{ "%.1f" | format(100 * row.mean) }}{% if row.deviation is not none %} ± {{ "%.1f" | format(100 * row.deviation) }}{% endif %} %{% endif %}</td>
<td>{{ (row.fid | last if row.fid else none) | number }}</td><td>{{ (row.tokens and row.tokens | round | int) | number }}</td>
<td>{{ row.seconds | duration if row.seconds is not none else "–" }}</td>
{% if table.traffic %}{% for at in (0, 1) %}<td>{{ (row.traffic and row.traffic[at]) | number }}</td>{% endfor %}{% endif %}
{% for name in data_sets %}<td>{{ row.paper[name] | number if name in row.paper else "–" }}</td>{% endfor %}</tr>
{% endfor %}
{% endcall %}
<p class="soft">Accuracy of the small model on real texts: mean ± standard deviation over the runs.
{%- if data_sets %} Columns {{ data_sets | join(", ") }}: the paper's figures; its models and data differ from ours, compare orders only.{% endif %}</p>
</section>
{% if plots %}
<section id="curves">
<h2>Curves</h2>
<div class="plots">{% for plot in plots %}{{ draw(plot) }}{% endfor %}</div>
</section>
{% endif %}
{% if figures %}
<section id="figures">
<h2>Every figure</h2>
<p>Means over the runs. Each run's own page has its definitions and intervals.</p>
{% call tabled("Every figure by row", ["figure"] + rows | selectattr("runs") | map(attribute="row") | list) %}
{% for name, values in figures.items() %}
<tr><th scope="row">{{ name }}{{ arrow(name | better) }}{{ tag(name in marked) }}</th>{% for value in values %}<td>{{ value | number }}</td>{% endfor %}</tr>
{% endfor %}
{% endcall %}
{% include "footnotes" %}
</section>
{% endif %}
<section id="runs">
<h2>Runs</h2>
{% call tabled("All runs", ["run", "row", "ε", "accuracy ↑", "result"]) %}
{% for run in runs %}
<tr><th scope="row">{% if has_page[run.folder] %}<a href="{{ run.folder | urlencode }}/report.html">{{ run.folder }}</a>{% else %}{{ run.folder }}{% endif %}</th>
<td>{{ run.row }}</td><td>{{ run.epsilon | epsilon if run.epsilon is not none else "–" }}{{ ": no guarantee" if run.unprotected }}</td>
<td>{{ run.accuracy | number }}</td><td class="text">{{ "complete" if run.error is none else "failed: " ~ run.error }}{% for weakness in run.weaknesses or () %}<br>{{ weakness }}{% endfor %}</td></tr>
{% endfor %}
{% endcall %}
</section>
</main>
<footer><p class="soft">Written by Caucus. This page needs no network and loads nothing. The same figures for programs: table.json.</p></footer>
<script>{{ script }}</script>
</body>
</html>
"""
