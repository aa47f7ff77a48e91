"""Macros for the parts of a page: head, tables, plots and samples."""

PIECES = r"""
{% macro head(title, style, script) %}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{{ style | sha256 }}'; {# -#}
 script-src 'sha256-{{ script | sha256 }}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{ title }}</title>
<style>{{ style }}</style>
</head>
{% endmacro %}
{% macro tag(private) %}{% if private %} <span class="tag">simulation only</span>{% endif %}{% endmacro %}
{% macro arrow(better) %}
{%- if better %} <span aria-hidden="true">{{ "↑" if better == "higher" else "↓" }}</span><span class="unseen">({{ better }} is better)</span>{% endif %}
{%- endmacro %}
{% macro figure_cell(figure) %}
{%- if figure is none %}–{% else %}{{ "not measured" if figure.value is none else figure.value | number }}
{%- if figure.interval %}<br><span class="soft small">{{ figure.interval[0] | number }} to {{ figure.interval[1] | number }}</span>{% endif %}{% endif %}
{%- endmacro %}
{% macro table(caption, head, marked=()) %}
<div class="scroll" tabindex="0" role="region" aria-label="{{ caption }}">
<table><caption>{{ caption }}</caption>
<thead><tr>{% for cell in head %}<th scope="col">{{ cell }}{{ tag(cell in marked) }}</th>{% endfor %}</tr></thead>
<tbody>
{{ caller() }}</tbody></table></div>
{% endmacro %}
{% macro shape(cloud) %}dots s{{ cloud.source }} c{{ cloud.label % 8 }}{{ " solid" if cloud.source == 0 and cloud.kind }}{% endmacro %}
{% macro mark(kind, x, y) %}
{# After eight colours the marks move on by one, so that no two of 32 lines look alike. #}
{% set kind = (kind + kind // 8) % 4 %}
{% if kind == 0 %}<circle cx="{{ x }}" cy="{{ y }}" r="3.5"/>
{% elif kind == 1 %}<rect x="{{ (x - 3.2) | round(1) }}" y="{{ (y - 3.2) | round(1) }}" width="6.4" height="6.4"/>
{% elif kind == 2 %}<path d="M{{ x }} {{ (y - 4.4) | round(1) }}l4.2 7.4h-8.4z"/>
{% else %}<path d="M{{ x }} {{ (y - 4.8) | round(1) }}l4.8 4.8l-4.8 4.8l-4.8 -4.8z"/>
{% endif %}
{% endmacro %}
{% macro draw(plot) %}
<figure id="plot-{{ plot.key }}">
<figcaption><strong>{{ plot.title }}.</strong> {{ plot.note }}</figcaption>
{% if plot.kind == "dots" and plot.labels | length > 1 %}
<label class="pick" hidden>Show <select id="{{ plot.key }}-label"><option value="">all labels</option>
{% for label in plot.labels %}<option value="{{ loop.index0 }}">{{ label }}</option>{% endfor %}
</select></label>
{% endif %}
<svg viewBox="0 0 {{ plot.width }} {{ plot.height }}" role="img" aria-labelledby="{{ plot.key }}-title {{ plot.key }}-text">
<title id="{{ plot.key }}-title">{{ plot.title }}</title>
<desc id="{{ plot.key }}-text">{{ plot.summary }}</desc>
{% if plot.kind == "bars" and plot.shade %}
<rect class="shade" x="{{ plot.shade[0] }}" y="{{ plot.top }}" width="{{ (plot.shade[1] - plot.shade[0]) | round(1) }}" height="{{ plot.bottom - plot.top }}"/>
{% endif %}
{% for y, text in plot.y_ticks %}
<line class="grid" x1="{{ plot.left }}" x2="{{ plot.right }}" y1="{{ y }}" y2="{{ y }}"/>
<text x="{{ plot.left - 6 }}" y="{{ y + 4 }}" text-anchor="end">{{ text }}</text>
{% endfor %}
{% for x, text in plot.x_ticks %}
<text x="{{ x }}" y="{{ plot.bottom + 16 }}" text-anchor="middle">{{ text }}</text>
{% endfor %}
{% if plot.x_name %}
<text x="{{ (plot.left + plot.right) / 2 }}" y="{{ plot.height - 3 }}" text-anchor="middle">{{ plot.x_name }}</text>
{% endif %}
{% if plot.kind == "lines" %}
{% for line in plot.series %}
<g class="line c{{ loop.index0 % 8 }}"><path class="stroke" d="{{ line.path }}"/>
{% set kind = loop.index0 %}
{% for x, y in line.points %}{{ mark(kind, x, y) }}{% endfor %}
</g>
{% endfor %}
{% elif plot.kind == "bars" %}
{% for x, y, width, height in plot.bars %}
{% if height %}<rect class="bar" x="{{ x }}" y="{{ y }}" width="{{ width }}" height="{{ height }}"/>
{% endif %}
{% endfor %}
{% else %}
{# The first source is drawn on top. #}
{% for cloud in plot.clouds | reverse %}
<path class="{{ shape(cloud) }}" data-label="{{ cloud.label }}" d="{{ cloud.path }}"/>
{% endfor %}
{% endif %}
</svg>
{% if plot.kind == "lines" and plot.series | length > 1 %}
<ul class="legend">
{% for line in plot.series %}
<li><svg viewBox="0 0 24 12" width="24" height="12" aria-hidden="true"><g class="line c{{ loop.index0 % 8 }}">
<path class="stroke" d="M0 6L24 6"/>{{ mark(loop.index0, 12, 6) }}</g></svg>{{ line.name }}</li>
{% endfor %}
</ul>
{% elif plot.kind == "dots" %}
{# No mark here has a data-label: choosing a label hides marks in the drawing alone. #}
<ul class="legend">
{% for marks in plot.legend %}
<li>{% for mark in marks %}<svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path class="{{ shape(mark) }}" d="{{ mark.path }}"/></svg>{% endfor %}{{ plot.labels[loop.index0] }}</li>
{% endfor %}
</ul>
{% if plot.sources | length > 1 %}<p class="soft small">First mark: {{ plot.sources[0] }}. Second mark: {{ plot.sources[1] }}.</p>{% endif %}
{% endif %}
<details><summary>Values</summary>
{% if plot.kind == "lines" %}
{% call table(plot.title ~ ", by " ~ plot.x_name, [plot.x_name] + plot.series | map(attribute="name") | list) %}
{% for place in plot.places %}
{% set at = loop.index0 %}
<tr><th scope="row">{{ place }}</th>{% for line in plot.series %}<td>{{ line.values[at] | number }}</td>{% endfor %}</tr>
{% endfor %}
{% endcall %}
{% elif plot.kind == "bars" %}
{% call table(plot.title, [plot.x_name, "count"]) %}
{% for name, count in plot.rows %}<tr><th scope="row">{{ name }}</th><td>{{ count | number }}</td></tr>
{% endfor %}
{% endcall %}
{% else %}
{% call table(plot.title ~ ": centre of each label", ["label", "texts", "drawn", "x", "y"]) %}
{% for label, source, count, x, y in plot.rows %}
<tr><th scope="row">{{ label }}</th><td>{{ source }}</td><td>{{ count | number }}</td><td>{{ x | number }}</td><td>{{ y | number }}</td></tr>
{% endfor %}
{% endcall %}
{% endif %}
</details>
</figure>
{% endmacro %}
{% macro sample(row) %}
<li><blockquote>{{ row.text[:long] }}{{ "…" if row.text | length > long }}</blockquote>
{% if row.text | length > long %}
<details><summary>All {{ row.text | length | number }} characters</summary><blockquote>{{ row.text }}</blockquote></details>
{% endif %}
<p class="by">{{ row.label }} · {{ row.model }} · round {{ row.round }}</p></li>
{% endmacro %}
"""
