"""The page about one run."""

PAGE = r"""
{% from "pieces" import draw, head, sample, table, tag with context %}
{% set task = run.task if run else "an unfinished run" %}
{% set total = released.texts %}
{% set unprotected = guarantee.kind == "none" %}
{{ head("Synthetic texts: " ~ task, style, script) }}
<body>
<header>
{% if warning %}
<p class="banner" role="note"><strong>{{ warning.partition(": ")[0] }}:</strong> {{ warning.partition(": ")[2] }}</p>
{% endif %}
<h1>{{ total | number }} synthetic texts{% if privacy %} from {{ privacy.parties }} part{{ "y" if privacy.parties == 1 else "ies" }}{% endif %}: {{ task }}</h1>
<nav aria-label="Sections"><ul>
<li><a href="#guarantee">Guarantee</a></li><li><a href="#open">Not covered</a></li><li><a href="#utility">Utility</a></li>
<li><a href="#figures">Figures</a></li><li><a href="#texts">Texts</a></li><li><a href="#rounds">Rounds</a></li><li><a href="#queries">Private queries</a></li>
<li><a href="#ledger">Ledger</a></li><li><a href="#samples">Samples</a></li><li><a href="#configuration">Configuration</a></li>
</ul></nav>
</header>
<main>
{% include "first" %}
{% if privacy and privacy.simulation %}
<p class="banner note" role="note"><strong>Simulation.</strong> All parties' records were on one machine. Figures marked “simulation only” were
computed from private records without noise and must not be published with the texts.</p>
{% endif %}
{% if weaknesses %}
<div class="banner note" role="note">
<p><strong>What is poor, and what to change</strong></p>
<ul class="tight">{% for weakness in weaknesses %}<li>{{ weakness.what }}{{ tag(weakness.simulation_only) }}; {{ weakness.do }}.</li>
{% endfor %}</ul>
</div>
{% endif %}
{% if partial or problems %}
<div class="banner note" role="note">
<p>{% if partial %}<strong>Partial run.</strong> {{ partial }} This page shows the files that exist.{% else %}<strong>Some files could not be read.</strong>{% endif %}</p>
{% if problems %}<ul class="tight">{% for problem in problems %}<li>{{ problem }}.</li>{% endfor %}</ul>{% endif %}
</div>
{% endif %}

<div class="cards">
<section class="card">
<h2>What was released</h2>
<p class="big">{{ total | number }} texts</p>
{% if total %}
<p>Written by {{ samples.models | length }} language model{{ "s" if samples.models | length != 1 }}
{%- if privacy and privacy.queries %}, chosen with the answers of {{ privacy.parties }} part{{ "y" if privacy.parties == 1 else "ies" }} about private records{% endif %}.
{# Queries with a longest text are answered by models that read a party's records. #}
{%- if privacy and not privacy.queries | selectattr("longest", "defined") | list %} No model was shown a private text.{% endif %}</p>
<ul class="tight">
{% for label, group in examples.items() %}
{% if loop.index <= 8 %}<li>{{ label }}: {{ group.total | number }}</li>{% endif %}
{% endfor %}
{% if examples | length > 8 %}<li>and {{ examples | length - 8 }} more labels</li>{% endif %}
</ul>
{% endif %}
</section>
<section class="card">
<h2>What it cost</h2>
<dl class="figures">
{% if cost.money %}
<dt>Paid to models</dt><dd>{% set costs = cost.money.values() | reject("none") | list %}{{ costs | sum | number }}, in the currency of the prices
{%- if costs | length < cost.money | length %}, and some at unknown prices{% endif %}</dd>
{% for model, money in cost.money.items() %}{% if cost.money | length > 1 and loop.index <= 6 %}
<dt>{{ model }}</dt><dd>{{ "price unknown" if money is none else money | number }}</dd>
{% endif %}{% endfor %}
{% endif %}
<dt>Model calls</dt><dd>{{ cost.calls | number }}</dd>
<dt>Tokens read</dt><dd>{{ cost.input_tokens | number }}{% if cost.cached_tokens %}, {{ cost.cached_tokens | number }} from the provider's cache{% endif %}</dd>
<dt>Tokens written</dt><dd>{{ cost.output_tokens | number }}</dd>
<dt>Time</dt><dd>{{ cost.seconds | duration }}</dd>
{% if privacy %}<dt>Private queries</dt><dd>{{ privacy.spent.queries_asked }} of {{ privacy.spent.queries_planned }}</dd>{% endif %}
</dl>
</section>
{% if privacy %}
<section class="card wide" id="full">
<h2>The guarantee in full</h2>
{% for part in privacy.statement.split("\n\n") %}<p>{{ part }}</p>{% endfor %}
</section>
<section class="card">
<h2>What is not covered</h2>
<ul class="tight">{% for item in privacy.not_covered %}<li>{{ item.partition(": ")[0] }}</li>{% endfor %}</ul>
<p><a href="#open">Each of these in full</a></p>
</section>
{% endif %}
</div>

<section id="open">
<h2>What the guarantee does not cover</h2>
{% if privacy %}
<ul class="tight">
{% for item in privacy.not_covered %}
{% set heading, colon, rest = item.partition(": ") %}
<li><strong>{{ heading }}{{ colon }}</strong>{{ rest }}</li>
{% endfor %}
</ul>
{% else %}
<p>There is no readable statement, so nothing is covered.</p>
{% endif %}
</section>

{% include "measures" %}

<section id="texts">
<h2>The texts</h2>
{% if text_plots %}
<div class="plots">{% for plot in text_plots %}{{ draw(plot) }}{% endfor %}</div>
{% endif %}
{% if not map.synthetic %}<p>There is no map of the texts{{ "" if total else ", since there are none" }}.</p>{% endif %}
</section>

<section id="rounds">
<h2>Rounds</h2>
{% if rounds %}
<div class="plots">{% for plot in round_plots %}{{ draw(plot) }}{% endfor %}</div>
{% if round_plots | selectattr("key", "equalto", "round-fid") | list | length == 0 %}<p>FID was not measured in this run.</p>{% endif %}
<h3>Each round</h3>
{% call table("Texts asked for, written and lost; time and tokens", ["round", "asked for", "written", "lost", "candidates", "calls",
  "tokens read", "tokens written", "write", "embed", "ask"]) %}
{% for entry in rounds %}
<tr><th scope="row">{{ entry.round }}</th><td>{{ entry.requested.values() | sum | number }}</td><td>{{ entry.generated.values() | sum | number }}</td>
<td>{{ entry.lost.values() | sum | number }}</td><td>{{ entry.candidates | number }}</td><td>{{ entry.calls | number }}</td>
<td>{{ entry.tokens.input | number }}</td><td>{{ entry.tokens.output | number }}</td>
{% for kind in ("generate", "embed", "ask") %}<td>{{ (entry.seconds[kind] or 0) | duration }}</td>{% endfor %}</tr>
{% endfor %}
{% endcall %}
{% if rounds | selectattr("notes") | list %}
<h3>Notes</h3>
<ul class="tight">{% for entry in rounds %}{% for note in entry.notes %}<li>Round {{ entry.round }}: {{ note }}</li>{% endfor %}{% endfor %}</ul>
{% endif %}
{% else %}
<p>No round was completed.</p>
{% endif %}
</section>

<section id="queries">
<h2>Private queries</h2>
{% if privacy and privacy.queries %}
<p>A party releases nothing but answers to these queries. Mechanism: {{ privacy.mechanism }}.
{%- if privacy.earlier %} They were asked in run {{ privacy.earlier.run }}; no party was asked in this one.{% endif %}</p>
{% call table("Planned queries", ["query", "kind", "times", "mechanism", "L1 sensitivity", "L2 sensitivity", "scale of the noise", "grid", "ε alone"]) %}
{% for query in privacy.queries %}
<tr><th scope="row">{{ query.name }}</th><td>{{ query.kind }}</td><td>{{ query.times }}</td><td>{{ query.mechanism }}</td>
<td>{{ query.sensitivity_l1 | number }}</td><td>{{ query.sensitivity_l2 | number }}</td><td>{{ query.scale | number }}</td>
<td>{{ query.grid }}</td><td>{{ query.epsilon_alone | epsilon }}</td></tr>
{% endfor %}
{% endcall %}
<p class="soft">Sensitivities and scales are in votes, records, cosines or features; a party sends them as integers, multiplied by
the grid. The sensitivity is how far one {{ "person" if privacy.adjacency.unit == "user" else "record" }} can move an answer at most. The scale is that
of the noise on each number of {{ "one party's answer" if privacy.aggregation == "none" else "the sum over parties" }}: the standard deviation of Gaussian noise, b of Laplace noise.</p>
{% if votes %}
<h3>Noised votes</h3>
<div class="plots">{% for plot in vote_plots %}{{ draw(plot) }}{% endfor %}</div>
{% call table("Noised votes for a candidate, over all candidates of a round", ["round", "direction", "candidates", "scale of the noise",
  "least", "10 %", "half", "90 %", "most", "above two scales"]) %}
{% for vote in votes %}
<tr><th scope="row">{{ vote.round }}</th><td>{{ vote.direction }}</td><td>{{ vote.candidates | number }}</td><td>{{ vote.scale | number }}</td>
{% for value in vote.quantiles %}<td>{{ value | number }}</td>{% endfor %}<td>{{ "%.1f" | format(100 * vote.beyond_noise) }} %</td></tr>
{% endfor %}
{% endcall %}
{% elif unprotected %}
<p>Votes are not shown: without noise they are exact counts of private records.</p>
{% endif %}
{% if privacy.against_colluders %}
<h3>If parties collude</h3>
<p>ε for the records of the other parties if this many parties share all they know with the coordinator, at the same δ. The plan allows for
{{ privacy.assumed_colluders }}.</p>
{% call table("ε against colluding parties", ["colluding parties", "ε"]) %}
{% for row in privacy.against_colluders %}
<tr{% if row.colluders == privacy.assumed_colluders %} class="planned"{% endif %}><th scope="row">{{ row.colluders }}
{%- if row.colluders == privacy.assumed_colluders %} (planned){% endif %}</th><td>{{ row.epsilon | epsilon }}</td></tr>
{% endfor %}
{% endcall %}
{% endif %}
{% elif privacy %}
<p>None was planned.</p>
{% else %}
<p>Unknown: there is no privacy statement.</p>
{% endif %}
</section>

<section id="ledger">
<h2>Ledger</h2>
{% if privacy %}
{% if privacy.earlier %}<p>No party was asked in this run: its texts are made of what run {{ privacy.earlier.run }} released, and have the
guarantee of that run, ε = {{ privacy.epsilon | epsilon }}, at no further cost.</p>
{% endif %}
<p>Spent{{ " in this run" if privacy.earlier }}: ε = {{ privacy.spent.epsilon | epsilon }}{% if not unprotected %} at δ = {{ privacy.delta | delta }}{% endif %}, in
{{ privacy.spent.queries_asked }} of {{ privacy.spent.queries_planned }} planned queries.</p>
{% endif %}
{% if rounds | selectattr("queries") | list %}
{% call table("Queries in the order in which they were answered", ["number", "query", "round", "mechanism", "scale of the noise",
  "parties that answered", "parties asked", "ε spent after the round"]) %}
{% for entry in rounds %}{% for query in entry.queries %}
<tr><th scope="row">{{ query.index }}</th><td>{{ query.name }}</td><td>{{ entry.round }}</td><td>{{ query.mechanism }}</td><td>{{ query.scale | number }}</td>
<td>{{ query.survivors }}</td><td>{{ query.parties }}</td><td>{{ entry.epsilon | epsilon if entry.epsilon is defined else "–" }}</td></tr>
{% endfor %}{% endfor %}
{% endcall %}
{% else %}
<p>No private query was answered.</p>
{% endif %}
</section>

<section id="samples">
<h2>Samples</h2>
{% if total %}
<div class="controls" id="controls" hidden>
<label>Search in the texts<input type="search" id="words"></label>
<label>Label<select id="label"><option value="">a few of each</option><option value="all">all labels ({{ total | number }})</option>
{% for label, group in examples.items() %}<option value="{{ loop.index0 }}">{{ label }} ({{ group.total | number }})</option>{% endfor %}
</select></label>
{% for part in ("model", "round") %}
<label>{{ part | capitalize }}<select id="{{ part }}"><option value="">all {{ part }}s</option>
{% for name, count in released[part].items() %}<option value="{{ loop.index0 }}">{{ name }} ({{ count | number }})</option>{% endfor %}
</select></label>
{% endfor %}
</div>
<p class="soft" id="state" role="status">A few of each label.</p>
<div id="examples">
{% for label, group in examples.items() %}
<h3>{{ label }}</h3>
<ul class="texts">{% for row in group.rows %}{{ sample(row) }}{% endfor %}</ul>
{% endfor %}
</div>
<div id="results" hidden>
<ul class="texts" id="found"></ul>
<p><button type="button" id="earlier">Earlier</button> <button type="button" id="later">Later</button></p>
</div>
<script type="application/json" id="samples-data">{{ samples | tojson }}</script>
{% else %}
<p>There are no texts.</p>
{% endif %}
</section>

<section id="configuration">
<h2>Configuration</h2>
{% if run %}<p>Method {{ run.method }}, task {{ run.task }}, {{ run.parties }} parties.</p>{% endif %}
<details><summary>Versions and settings</summary>
{% if run and run.versions %}
{% call table("Versions", ["software", "version"]) %}
{% for name, version in run.versions.items() %}<tr><th scope="row">{{ name }}</th><td>{{ version }}</td></tr>
{% endfor %}
{% endcall %}
{% endif %}
{% if config is not none %}<pre tabindex="0" role="region" aria-label="Configuration file">{{ config }}</pre>{% else %}<p>config.yaml is missing.</p>{% endif %}
</details>
</section>
</main>
<footer><p class="soft">Written by Caucus{% if run and run.versions.caucus is defined %} {{ run.versions.caucus }}{% endif %}. This page needs no network and loads nothing.
The same facts for programs: report.json. All texts: synthetic.jsonl.</p></footer>
<script>{{ script }}</script>
</body>
</html>
"""
