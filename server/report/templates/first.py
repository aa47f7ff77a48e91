"""The first screen of a run's page: the verdict, what was run, the accuracies behind it, and the guarantee for its two sides."""

FIRST = r"""
{% from "pieces" import tag with context %}
<section id="verdict" aria-labelledby="verdict-title">
<h2 id="verdict-title" class="unseen">Verdict</h2>
<p class="big">{{ verdict.sentence }}{{ tag(verdict.simulation_only) }}</p>
</section>
{% if run %}
<dl id="about" class="small">
<dt>Method</dt><dd>{{ run.method }}{% if run.started %}, begun on {{ run.started }}{% endif %}</dd>
{% if run.models %}<dt>Language models</dt><dd>{{ run.models | join(", ") }}</dd>{% endif %}
{% if run.encoder %}<dt>Encoder</dt><dd>{{ run.encoder }}</dd>{% endif %}
{% if run.hospitals %}<dt>Hospitals</dt><dd>{{ run.hospitals | join(", ") }}</dd>{% endif %}
{% if run.purpose %}<dt>Purpose</dt><dd>{{ run.purpose }}</dd>{% endif %}
{% if run.recipient %}<dt>Recipient</dt><dd>{{ run.recipient }}</dd>{% endif %}
</dl>
{% endif %}
<div class="cards two">
<section class="card">
<h2>Accuracy</h2>
{% set measured = verdict.accuracy %}
{% if measured.synthetic is none and measured.real is none and measured.majority is none %}
<p>Not measured in this run.</p>
{% else %}
<table class="bars"><caption>Of a classifier on {{ measured.tested | number }} real texts that nobody trained on, by what it was trained on ↑</caption>
<tbody>
{% for name, value, private in (("synthetic texts", measured.synthetic, false), ("real records", measured.real, true), ("nothing: the most frequent label", measured.majority, false)) %}
<tr><th scope="row">{{ name }}{{ tag(private and value is not none) }}</th>
<td>{% if value is none %}not measured{% else %}{{ value | percent }}
{%- if loop.first and measured.interval %}<br><span class="soft small">{{ measured.interval[0] | percent }} to {{ measured.interval[1] | percent }}</span>{% endif %}{% endif %}</td>
<td class="drawn">{% if value is not none %}<svg viewBox="0 0 100 12" aria-hidden="true"><rect class="shade" width="100" height="12"/><rect class="c{{ loop.index0 }} filled" width="{{ (100 * value) | round(1) }}" height="12"/></svg>{% endif %}</td></tr>
{% endfor %}
</tbody></table>
<p class="small"><a href="#utility">With intervals and training sizes</a></p>
{% endif %}
</section>
<section class="card" id="guarantee">
<h2>The guarantee</h2>
<p class="big">{{ guarantee.title }}</p>
<dl class="sides">
<dt>Whoever reads the texts</dt><dd>{{ guarantee.reader }}</dd>
<dt>Coordinator and parties</dt><dd>{{ guarantee.insiders }}</dd>
{% if guarantee.assumes %}<dt>Assumed</dt><dd>{{ guarantee.assumes }}</dd>{% endif %}
</dl>
{% if privacy %}<p class="small"><a href="#full">In full</a> · <a href="#open">What it does not cover</a></p>{% endif %}
</section>
</div>
"""
