"""What was measured: the one table of utility, the labels, and every other figure beside its references."""

MEASURES = r"""
{% from "pieces" import arrow, figure_cell, table, tag with context %}
<section id="utility">
<h2>What the texts teach</h2>
{% if utility.rows %}
{% call table("Accuracy and macro-F1 by what the classifier was trained on", ["trained on", "texts", "accuracy ↑", "macro-F1 ↑", "tested on"]) %}
{% for row in utility.rows %}
<tr><th scope="row">{{ row.trained_on }}{{ tag(row.simulation_only) }}</th><td>{{ row.texts | number }}</td>
{% for part in ("accuracy", "macro_f1") %}<td>{{ figure_cell(row[part]) }}</td>{% endfor %}
<td class="text">{{ row.tested | number }} {{ row.tested_on }}{% if row.reason %}: {{ row.reason }}{% endif %}</td></tr>
{% endfor %}
{% endcall %}
{% for note in utility.notes %}<p class="soft small">{{ note }}</p>{% endfor %}
{% else %}
<p>Not measured in this run.</p>
{% endif %}
{% if labels.rows %}
<h3>By label</h3>
{% set counted = labels.records == "counted" %}
{% set recalled = labels.rows | rejectattr("recall", "none") | list %}
{% call table("Texts and records by label", ["label", "texts", "share of the texts", "median words"]
  + (["recall ↑"] if recalled else [])
  + (["records"] if counted else []) + (["share of the records" if counted else "share of the records, noised"] if labels.records else []), ["records", "share of the records"]) %}
{% for row in labels.rows %}
<tr><th scope="row">{{ row.label }}</th><td>{{ row.texts | number }}</td><td>{{ row.share | percent }}</td><td>{{ row.words | number }}</td>
{% if recalled %}<td>{{ row.recall | percent }}</td>{% endif %}
{% if counted %}<td>{{ row.records | number }}</td>{% endif %}
{% if labels.records %}<td>{{ row.record_share | percent }}</td>{% endif %}</tr>
{% endfor %}
{% endcall %}
<p class="soft small">Shares of the texts are of their weights.
{%- if recalled %} Recall: of the test texts with this label, those to which a classifier of the synthetic texts gives it.{% endif %}
{%- if labels.records == "noised" %} Shares of the records are from answers with noise.
{%- elif not labels.records %} How many records have each label is not known here.{% endif %}</p>
{% endif %}
</section>

<section id="figures">
<h2>Every other figure</h2>
<div class="groups">
{% for group in metric_tables %}
<div>
<h3>{{ group.title }}{{ tag(group.private) }}</h3>
{% call table(group.title, ["figure"] + group.columns + (["rows"] if group.has_rows else []) + (["definition"] if group.has_words else []), group.marked) %}
{% for row in group.rows %}
<tr><th scope="row">{{ row.name }}{{ arrow(row.better) }}{{ tag(row.private and not group.private) }}</th>
{% for cell in row.cells %}<td>{{ figure_cell(cell) }}</td>{% endfor %}
{% if group.has_rows %}<td>{{ row.rows | number }}</td>{% endif %}
{% if group.has_words %}<td class="text">{{ row.words }}</td>{% endif %}</tr>
{% endfor %}
{% endcall %}
{% for note in group.notes %}<p class="soft small">{% if note.of %}<strong>{{ note.of }}:</strong> {% endif %}{{ note.text }}</p>
{% endfor %}
</div>
{% else %}
<p>Not measured in this run.</p>
{% endfor %}
</div>
{% include "footnotes" %}
</section>
"""

FOOTNOTES = r"""
<p class="soft">↑ higher is better, ↓ lower is better. Below a figure, if it has one: its 95 % interval, computed as in its
definition. “Simulation only”: computed from private records without noise, and not to be published.</p>
"""
