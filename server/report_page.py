"""The template of the report. A Python module, because Flower's bundle carries no file of any type that suits it."""

PAGE = r"""{% macro table(caption, head) %}
<div class="scroll" tabindex="0" role="region" aria-label="{{ caption }}">
<table><caption>{{ caption }}</caption>
<thead><tr>{% for cell in head %}<th scope="col">{{ cell }}</th>{% endfor %}</tr></thead>
<tbody>
{{ caller() }}</tbody></table></div>
{% endmacro %}
{% macro mark(kind, x, y) %}
{# After eight colours the marks move on by one, so that no two of 32 lines look alike. #}
{% set kind = (kind + kind // 8) % 4 %}
{% if kind == 0 %}<circle cx="{{ x }}" cy="{{ y }}" r="3.5"/>
{% elif kind == 1 %}<rect x="{{ x - 3.2 }}" y="{{ y - 3.2 }}" width="6.4" height="6.4"/>
{% elif kind == 2 %}<path d="M{{ x }} {{ y - 4.4 }}l4.2 7.4h-8.4z"/>
{% else %}<path d="M{{ x }} {{ y - 4.8 }}l4.8 4.8l-4.8 4.8l-4.8 -4.8z"/>
{% endif %}
{% endmacro %}
{% macro draw(plot) %}
<figure>
<figcaption><strong>{{ plot.title }}.</strong> {{ plot.note }}</figcaption>
<svg viewBox="0 0 {{ plot.width }} {{ plot.height }}" role="img" aria-labelledby="{{ plot.key }}-title {{ plot.key }}-text">
<title id="{{ plot.key }}-title">{{ plot.title }}</title>
<desc id="{{ plot.key }}-text">{{ plot.summary }}</desc>
{% for y, text in plot.y_ticks %}
<line class="grid" x1="{{ plot.left }}" x2="{{ plot.right }}" y1="{{ y }}" y2="{{ y }}"/>
<text x="{{ plot.left - 6 }}" y="{{ y + 4 }}" text-anchor="end">{{ text }}</text>
{% endfor %}
{% for x, text in plot.x_ticks %}
<text x="{{ x }}" y="{{ plot.bottom + 16 }}" text-anchor="middle">{{ text }}</text>
{% endfor %}
<text x="{{ (plot.left + plot.right) / 2 }}" y="{{ plot.height - 3 }}" text-anchor="middle">round</text>
{% for line in plot.series %}
<g class="line c{{ loop.index0 % 8 }}"><path class="stroke" d="{{ line.path }}"/>
{% set kind = loop.index0 %}
{% for x, y in line.points %}{{ mark(kind, x, y) }}{% endfor %}
</g>
{% endfor %}
</svg>
{% if plot.series | length > 1 %}
<ul class="legend">
{% for line in plot.series %}
<li><svg viewBox="0 0 24 12" width="24" height="12" aria-hidden="true"><g class="line c{{ loop.index0 % 8 }}">
<path class="stroke" d="M0 6L24 6"/>{{ mark(loop.index0, 12, 6) }}</g></svg>{{ line.name }}</li>
{% endfor %}
</ul>
{% endif %}
<details><summary>Values</summary>
{% call table(plot.title ~ ", by round", ["round"] + plot.series | map(attribute="name") | list) %}
{% for number in plot.rounds %}
{% set at = loop.index0 %}
<tr><th scope="row">{{ number }}</th>{% for line in plot.series %}<td>{{ line.values[at] | number }}</td>{% endfor %}</tr>
{% endfor %}
{% endcall %}
</details>
</figure>
{% endmacro %}
{% macro sample(row) %}
<li><blockquote>{{ row.text }}</blockquote><p class="by">{{ row.label }} · {{ row.model }} · round {{ row.round }}</p></li>
{% endmacro %}
{% set script %}
"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const data = JSON.parse(element("samples-data").textContent);
  const lower = data.rows.map((row) => row[0].toLowerCase());
  const size = 20;
  let found = [], page = 0;

  const card = ([text, label, model, round]) => {
    const item = document.createElement("li");
    item.append(document.createElement("blockquote"), document.createElement("p"));
    item.firstChild.textContent = text;
    item.lastChild.className = "by";
    item.lastChild.textContent = `${data.labels[label]} · ${data.models[model]} · round ${round}`;
    return item;
  };
  const show = () => {
    const pages = Math.max(1, Math.ceil(found.length / size));
    const cards = found.slice(page * size, (page + 1) * size).map((at) => card(data.rows[at]));
    element("found").replaceChildren(...cards);
    element("state").textContent =
      `${found.length.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")} texts, page ${page + 1} of ${pages}`;
    element("earlier").disabled = page === 0;
    element("later").disabled = page + 1 >= pages;
  };
  const search = () => {
    const words = element("words").value.trim().toLowerCase();
    const label = element("label").value;
    const examples = words === "" && label === "";
    element("examples").hidden = !examples;
    element("results").hidden = examples;
    if (examples) {
      element("state").textContent = "Examples of each label. Search, or choose a label, to read all texts.";
      return;
    }
    found = [];
    for (let at = 0; at < lower.length; at += 1) {
      const fits = label === "" || label === "all" || data.rows[at][1] === Number(label);
      if (fits && lower[at].includes(words)) found.push(at);
    }
    page = 0;
    show();
  };
  const turn = (by) => { page += by; show(); element("controls").scrollIntoView(); };
  element("words").addEventListener("input", search);
  element("label").addEventListener("input", search);
  element("earlier").addEventListener("click", () => turn(-1));
  element("later").addEventListener("click", () => turn(1));
  element("controls").hidden = false;
  search();
})();
{% endset %}
{% set task = run.task if run else "an unfinished run" %}
{% set total = samples.rows | length %}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{{ script | sha256 }}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Synthetic texts: {{ task }}</title>
<style>
:root { color-scheme: light dark; --paper: #fff; --card: #f5f6f8; --ink: #1b1f24; --soft: #545c66; --rule: #d5d9de;
  --link: #0b57a4; --red: #b3161b; --on-red: #fff; --amber: #fff3d1; --on-amber: #573e00;
  --c0: #0b62a8; --c1: #b8430a; --c2: #00735c; --c3: #8a3a8f; --c4: #7a5c00; --c5: #c2185b; --c6: #00788a; --c7: #4a4f57; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --card: #1e2329; --ink: #e8eaed; --soft: #a9b1bb;
  --rule: #39414a; --link: #82bbff; --red: #a3181d; --on-red: #fff; --amber: #3d3110; --on-amber: #ffdf91;
  --c0: #6bb3ff; --c1: #ff9a62; --c2: #4fd1a5; --c3: #d59bea; --c4: #e3c34f; --c5: #ff86b3; --c6: #5fd7e5; --c7: #c7ccd2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 0 1rem 3rem; max-width: 70rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 1.5rem 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 0 0 .4rem; }
p, ul, ol, dl { margin: 0 0 .75rem; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; list-style: none; }
nav a { display: inline-block; padding: .25rem 0; }
.banner { margin: .75rem 0; padding: .7rem 1rem; border-radius: .4rem; background: var(--red); color: var(--on-red); }
.banner.note { background: var(--amber); color: var(--on-amber); }
.banner p:last-child, .card > :last-child { margin-bottom: 0; }
section > p, section > ul { max-width: 46rem; }
.cards { display: grid; gap: .75rem; }
@media (min-width: 60rem) { .cards { grid-template-columns: repeat(3, 1fr); } .card.wide { grid-column: span 2; } }
.card { padding: .8rem 1rem; line-height: 1.45; border-radius: .5rem; background: var(--card); }
.card h2 { margin: 0 0 .5rem; padding: 0; border: 0; font-size: 1.1rem; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .2rem 1rem; } dt { color: var(--soft); } dd { margin: 0; }
.tag { padding: .05rem .45rem; border-radius: .3rem; background: var(--red); color: var(--on-red); font-size: .8rem; white-space: nowrap; }
.planned { font-weight: 650; } .planned th { font-weight: inherit; }
.big { font-size: 1.5rem; font-weight: 650; line-height: 1.3; }
.soft, .by, figcaption, caption { color: var(--soft); }
.tight { padding-left: 1.1rem; }
.scroll { overflow-x: auto; margin-bottom: 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; font-size: .9rem; }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; border-bottom: 1px solid var(--rule); vertical-align: top; }
td { white-space: nowrap; } th:first-child { text-align: left; } th { font-weight: 600; }
tbody th { font-weight: 400; min-width: 5rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; min-width: 0; } figure > svg { width: 100%; height: auto; } figcaption { font-size: .9rem; margin-bottom: .5rem; } figcaption strong { color: var(--ink); }
svg text { fill: var(--soft); font-size: 12px; } .grid { stroke: var(--rule); }
.line { stroke-width: 2; fill: currentColor; } .stroke { fill: none; stroke: currentColor; }
{% for at in range(8) %}.c{{ at }} { color: var(--c{{ at }}); } {% endfor %}

.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: 0; list-style: none; font-size: .9rem; }
.legend svg { margin-right: .4rem; vertical-align: middle; }
summary { cursor: pointer; padding: .3rem 0; }
.controls { display: flex; flex-wrap: wrap; gap: .75rem; align-items: end; margin-bottom: .5rem; }
.controls[hidden] { display: none; }
.controls label { display: grid; gap: .2rem; font-size: .9rem; flex: 1 1 14rem; }
input, select, button { font: inherit; padding: .45rem .6rem; border: 1px solid var(--soft); border-radius: .35rem;
  background: var(--paper); color: var(--ink); max-width: 100%; }
button:disabled { opacity: .5; }
.texts { padding: 0; list-style: none; }
.texts li { padding: .6rem 0; border-bottom: 1px solid var(--rule); }
blockquote { margin: 0; white-space: pre-wrap; } .by { margin: .2rem 0 0; font-size: .85rem; }
pre { overflow-x: auto; padding: 1rem; border-radius: .5rem; background: var(--card); font-size: .85rem; }
footer { margin-top: 3rem; }
@media print { :root { color-scheme: light; } body { max-width: none; font: 9pt/1.35 system-ui, sans-serif; } html { font-size: 9pt; } table { font-size: 8pt; } nav, .controls, #state, details { display: none; }
  .card, figure, tr, .texts li { break-inside: avoid; } .banner { border: 2px solid var(--red); print-color-adjust: exact; }
  .cards { grid-template-columns: repeat(3, 1fr); } .card.wide { grid-column: span 2; } .plots { grid-template-columns: 1fr 1fr; }
  h2, h3 { break-after: avoid; } pre { white-space: pre-wrap; } .scroll { overflow: visible; } }
</style>
</head>
<body>
<header>
<h1>{{ total | number }} synthetic texts{% if privacy %} from {{ privacy.parties }} parties{% endif %}: {{ task }}</h1>
<nav aria-label="Sections"><ul>
<li><a href="#guarantee">Guarantee</a></li><li><a href="#utility">Utility</a></li><li><a href="#rounds">Rounds</a></li>
<li><a href="#queries">Private queries</a></li><li><a href="#samples">Samples</a></li>
<li><a href="#configuration">Configuration</a></li><li><a href="#ledger">Ledger</a></li>
</ul></nav>
</header>
<main>
{% if unprotected %}
<p class="banner" role="note"><strong>No privacy: for experiments only.</strong> {{ privacy.statement.split("\n\n")[0] }}</p>
{% endif %}
{% if privacy and privacy.simulation %}
<p class="banner" role="note"><strong>Simulation.</strong> All parties' records were on one machine. Figures marked “simulation only” were
computed from private records without noise and must not leave with the texts.</p>
{% endif %}
{% if partial or problems %}
<div class="banner note" role="note">
<p>{% if partial %}<strong>Partial run.</strong> {{ partial }} This page shows what there is.{% else %}<strong>Some files could not be read.</strong>{% endif %}</p>
{% if problems %}<ul class="tight">{% for problem in problems %}<li>{{ problem }}.</li>{% endfor %}</ul>{% endif %}
</div>
{% endif %}

<div class="cards">
<section class="card">
<h2>What was released</h2>
<p class="big">{{ total | number }} texts</p>
{% if total %}
<p>Written by {{ samples.models | length }} language model{{ "s" if samples.models | length != 1 }}
{%- if privacy and privacy.queries %}, chosen with the answers of {{ privacy.parties }} parties about their private records{% endif %}. No model was shown
a private text.</p>
<ul class="tight">
{% for label, some in examples.items() %}
{% if loop.index <= 8 %}<li>{{ label }}: {{ some.total | number }}</li>{% endif %}
{% endfor %}
{% if examples | length > 8 %}<li>and {{ examples | length - 8 }} more labels</li>{% endif %}
</ul>
{% endif %}
</section>
<section class="card" id="guarantee">
<h2>The guarantee</h2>
{% if privacy %}
<p class="big">ε = {{ (privacy.planned_epsilon if privacy.calibration == "paper" else privacy.epsilon) | epsilon }}{% if not unprotected %}, δ = {{ privacy.delta | delta }}{% endif %}</p>
<dl>
<dt>Protected</dt><dd>{% if unprotected %}nothing
{%- elif privacy.adjacency.unit == "user" %}all records of one user, at most {{ privacy.adjacency.max_records }} ({{ privacy.adjacency.relation }})
{%- else %}one record ({{ privacy.adjacency.relation }}){% endif %}</dd>
{% if privacy.queries %}<dt>Aggregation</dt><dd>{% if privacy.aggregation == "none" %}none: the coordinator sees each party's answer
{%- else %}{{ privacy.aggregation }}{% endif %}</dd>{% endif %}
{% if privacy.queries and privacy.aggregation != "none" and not unprotected %}
<dt>Allows for</dt><dd>{{ privacy.assumed_colluders }} colluding and {{ privacy.max_dropouts }} missing parties of {{ privacy.parties }}</dd>
{% endif %}
</dl>
{% else %}
<p>No privacy statement was found, so nothing can be said. Treat these texts as private data.</p>
{% endif %}
</section>
<section class="card">
<h2>What it cost</h2>
<dl class="figures">
<dt>Model calls</dt><dd>{{ cost.calls | number }}</dd>
<dt>Tokens read</dt><dd>{{ cost.input | number }}</dd>
<dt>Tokens written</dt><dd>{{ cost.output | number }}</dd>
{% if cost.money %}<dt>Paid to models, in the currency of their prices</dt>
<dd>{{ cost.money | select("number") | sum | number }}{% if none in cost.money %}, and some at unknown prices{% endif %}</dd>{% endif %}
<dt>Time</dt><dd>{{ cost.seconds | duration }}</dd>
{% if privacy %}<dt>Private queries</dt><dd>{{ privacy.spent.queries_asked }} of {{ privacy.spent.queries_planned }}</dd>{% endif %}
</dl>
</section>
{% if privacy %}
<section class="card wide">
<h2>In plain words</h2>
{% for part in privacy.statement.split("\n\n") %}<p>{{ part }}</p>{% endfor %}
</section>
<section class="card">
<h2>What is not covered</h2>
<ul class="tight">{% for item in privacy.not_covered %}<li>{{ item.partition(": ")[0] }}</li>{% endfor %}</ul>
<p><a href="#open">Each of these in full</a></p>
</section>
{% endif %}
</div>

{% if privacy %}
<section id="open">
<h2>What the guarantee does not cover</h2>
<ul class="tight">
{% for item in privacy.not_covered %}
{% set head, colon, rest = item.partition(": ") %}
<li><strong>{{ head }}{{ colon }}</strong>{{ rest }}</li>
{% endfor %}
</ul>
</section>
{% endif %}

<section id="utility">
<h2>Utility against real data</h2>
{% if metrics and (metrics.get("synthetic") or metrics.get("real_private")) %}
<p>{{ metrics.definition }}</p>
{% call table("Trained on these, tested on " ~ metrics.test_records | number ~ " real records",
  ["trained on", "records", "accuracy", "macro-F1"]) %}
{% if metrics.synthetic %}
<tr><th scope="row">synthetic texts</th><td>{{ metrics.synthetic.records | number }}</td>
<td>{{ metrics.synthetic.accuracy | percent }}</td><td>{{ metrics.synthetic.macro_f1 | percent }}</td></tr>
{% endif %}
{% if metrics.real_private %}
<tr><th scope="row">private records <span class="tag">simulation only</span></th><td>{{ metrics.real_private.records | number }}</td>
<td>{{ metrics.real_private.accuracy | percent }}</td><td>{{ metrics.real_private.macro_f1 | percent }}</td></tr>
{% endif %}
{% endcall %}
{% else %}
<p>Not measured in this run.</p>
{% endif %}
</section>

<section id="rounds">
<h2>Rounds</h2>
{% if rounds %}
<div class="plots">{% for plot in plots %}{{ draw(plot) }}{% endfor %}</div>
{% if plots | selectattr("key", "equalto", "fid") | list | length == 0 %}<p>FID was not measured in this run.</p>{% endif %}
<h3>Each round</h3>
{% call table("Texts asked for, written and lost; time and tokens", ["round", "asked for", "written", "lost", "candidates", "calls",
  "tokens read", "tokens written", "write", "embed", "ask"]) %}
{% for entry in rounds %}
<tr><th scope="row">{{ entry.round }}</th><td>{{ entry.requested.values() | sum | number }}</td><td>{{ entry.generated.values() | sum | number }}</td>
<td>{{ entry.lost.values() | sum | number }}</td><td>{{ entry.candidates | number }}</td><td>{{ entry.calls | number }}</td>
<td>{{ entry.tokens.input | number }}</td><td>{{ entry.tokens.output | number }}</td><td>{{ entry.seconds.generate | duration }}</td>
<td>{{ entry.seconds.embed | duration }}</td><td>{{ entry.seconds.ask | duration }}</td></tr>
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
<p>Everything that leaves a party is an answer to one of these. Mechanism: {{ privacy.mechanism }}.</p>
{% call table("Planned queries", ["query", "kind", "times", "mechanism", "L1 sensitivity", "L2 sensitivity", "scale of the noise", "grid", "ε alone"]) %}
{% for query in privacy.queries %}
<tr><th scope="row">{{ query.name }}</th><td>{{ query.kind }}</td><td>{{ query.times }}</td><td>{{ query.mechanism }}</td>
<td>{{ query.sensitivity_l1 | number }}</td><td>{{ query.sensitivity_l2 | number }}</td><td>{{ query.scale | number }}</td>
<td>{{ query.grid }}</td><td>{{ query.epsilon_alone | epsilon }}</td></tr>
{% endfor %}
{% endcall %}
<p class="soft">Sensitivities and scales are in votes, records, cosines or features; they leave a party as whole numbers, multiplied by
the grid. The sensitivity is how far one {{ "person" if privacy.adjacency.unit == "user" else "record" }} can move an answer at most. The scale is that
of the noise on each number of {{ "one party's answer" if privacy.aggregation == "none" else "the sum over parties" }}: the standard deviation of Gaussian noise, b of Laplace noise.</p>
{% if privacy.against_colluders %}
<h3>If parties collude</h3>
<p>ε that holds for the other parties' records when this many parties tell the coordinator all they know, at the same δ. The plan allows for
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

<section id="samples">
<h2>Samples</h2>
{% if total %}
<div class="controls" id="controls" hidden>
<label>Search in the texts<input type="search" id="words"></label>
<label>Label<select id="label"><option value="">examples of each</option><option value="all">all labels ({{ total | number }})</option>
{% for label, some in examples.items() %}<option value="{{ loop.index0 }}">{{ label }} ({{ some.total | number }})</option>{% endfor %}
</select></label>
</div>
<p class="soft" id="state" role="status">Examples of each label.</p>
<div id="examples">
{% for label, some in examples.items() %}
<h3>{{ label }}</h3>
<ul class="texts">{% for row in some.rows %}{{ sample(row) }}{% endfor %}</ul>
{% endfor %}
</div>
<div id="results" hidden>
<ul class="texts" id="found"></ul>
<p><button type="button" id="earlier">Earlier</button> <button type="button" id="later">Later</button></p>
</div>
<script type="application/json" id="samples-data">{{ samples | tojson }}</script>
<script>{{ script }}</script>
{% else %}
<p>There are no texts.</p>
{% endif %}
</section>

<section id="configuration">
<h2>Configuration</h2>
{% if run %}
<p>Method {{ run.method }}, task {{ run.task }}, {{ run.parties }} parties.</p>
{% call table("Versions", ["software", "version"]) %}
{% for name, version in run.versions.items() %}<tr><th scope="row">{{ name }}</th><td>{{ version }}</td></tr>
{% endfor %}
{% endcall %}
{% endif %}
{% if config is not none %}<pre tabindex="0" aria-label="Configuration file">{{ config }}</pre>{% else %}<p>config.yaml is missing.</p>{% endif %}
</section>

<section id="ledger">
<h2>Ledger</h2>
{% if privacy %}
<p>Spent: ε = {{ privacy.spent.epsilon | epsilon }}{% if not unprotected %} at δ = {{ privacy.delta | delta }}{% endif %}, in
{{ privacy.spent.queries_asked }} of {{ privacy.spent.queries_planned }} planned queries.</p>
{% endif %}
{% if rounds | selectattr("queries") | list %}
{% call table("Queries in the order in which they were answered", ["number", "query", "round", "scale of the noise", "parties that stayed", "parties asked"]) %}
{% for entry in rounds %}{% for query in entry.queries %}
<tr><th scope="row">{{ query.index }}</th><td>{{ query.name }}</td><td>{{ entry.round }}</td><td>{{ query.scale | number }}</td>
<td>{{ query.survivors }}</td><td>{{ query.parties }}</td></tr>
{% endfor %}{% endfor %}
{% endcall %}
{% else %}
<p>No private query was answered.</p>
{% endif %}
</section>
</main>
<footer><p class="soft">Written by Caucus{% if run and run.versions.caucus is defined %} {{ run.versions.caucus }}{% endif %}. This page needs no network and loads nothing.</p></footer>
</body>
</html>
"""
