"""Style sheet of all pages: for light, dark and narrow screens and for print."""

STYLE = r"""
:root { color-scheme: light dark; --paper: #fff; --card: #f5f6f8; --ink: #1b1f24; --soft: #545c66; --rule: #d5d9de;
  --link: #0b57a4; --red: #b3161b; --on-red: #fff; --amber: #fff3d1; --on-amber: #573e00;
  --c0: #33147e; --c1: #d27319; --c2: #089c5f; --c3: #7d154a; --c4: #7986ac; --c5: #5b3a00; --c6: #b25eff; --c7: #3609ff; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --card: #1e2329; --ink: #e8eaed; --soft: #a9b1bb;
  --rule: #39414a; --link: #82bbff; --red: #a3181d; --on-red: #fff; --amber: #3d3110; --on-amber: #ffdf91;
  --c0: #c3e8ff; --c1: #e44110; --c2: #00ff93; --c3: #ec81ff; --c4: #ddd202; --c5: #877355; --c6: #9113ff; --c7: #267991; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 0 1rem 3rem; max-width: 70rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; overflow-wrap: anywhere; line-height: 1.25; margin: 1.5rem 0 .5rem; }
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
.cards.two { margin: 1rem 0; } @media (min-width: 60rem) { .cards.two { grid-template-columns: 2fr 3fr; } }
.bars { width: 100%; } .bars .drawn { width: 40%; padding-right: 0; } .bars svg { width: 100%; height: .9rem; } .filled { fill: currentColor; }
.sides { grid-template-columns: 1fr; gap: 0; } .sides dd { margin-bottom: .5rem; } .card > .big { margin-bottom: .5rem; }
.unseen { position: absolute; clip-path: inset(50%); white-space: nowrap; }
.big { font-size: 1.5rem; font-weight: 650; line-height: 1.3; }
.soft, .by, figcaption, caption { color: var(--soft); }
.small { font-size: .9rem; }
.tight { padding-left: 1.1rem; }
.scroll { overflow-x: auto; margin-bottom: 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; font-size: .9rem; }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; border-bottom: 1px solid var(--rule); vertical-align: top; }
td { white-space: nowrap; } th:first-child { text-align: left; } th { font-weight: 600; }
tbody th { font-weight: 400; min-width: 5rem; }
.groups { columns: 2 28rem; column-gap: 2rem; } .groups > * { break-inside: avoid; }
.groups caption { position: absolute; clip-path: inset(50%); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; min-width: 0; } figure > svg { width: 100%; height: auto; } figcaption { font-size: .9rem; margin-bottom: .5rem; } figcaption strong { color: var(--ink); }
svg text { fill: var(--soft); font-size: 12px; } .grid { stroke: var(--rule); }
.line { stroke-width: 2; fill: currentColor; } .stroke { fill: none; stroke: currentColor; }
.c0 { color: var(--c0); }
.c1 { color: var(--c1); }
.c2 { color: var(--c2); }
.c3 { color: var(--c3); }
.c4 { color: var(--c4); }
.c5 { color: var(--c5); }
.c6 { color: var(--c6); }
.c7 { color: var(--c7); }

.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: 0; list-style: none; font-size: .9rem; }
.legend svg { margin-right: .4rem; vertical-align: middle; }
summary { cursor: pointer; padding: .3rem 0; }
.controls { display: flex; flex-wrap: wrap; gap: .75rem; align-items: end; margin-bottom: .5rem; }
.controls[hidden] { display: none; }
.controls label { display: grid; gap: .2rem; font-size: .9rem; flex: 1 1 11rem; min-width: 0; }
input, select, button { font: inherit; padding: .45rem .6rem; border: 1px solid var(--soft); border-radius: .35rem;
  background: var(--paper); color: var(--ink); max-width: 100%; }
button:disabled { opacity: .5; }
.shade { fill: var(--rule); opacity: .55; } .bar { fill: var(--c0); }
.dots { fill: none; stroke: currentColor; stroke-linecap: round; } .dots.s0 { stroke-width: 4.5; } .dots.s1 { stroke-width: 1; opacity: .7; } .dots.solid { fill: currentColor; stroke: none; }
.dots[hidden] { display: none; } .pick { display: inline-flex; gap: .5rem; align-items: center; font-size: .9rem; margin-bottom: .5rem; }
.pick[hidden] { display: none; }
td.text { white-space: normal; text-align: left; min-width: 16rem; max-width: 34rem; color: var(--soft); font-size: .9rem; }
.texts { padding: 0; list-style: none; }
.texts li { padding: .6rem 0; border-bottom: 1px solid var(--rule); }
blockquote, .by, h3, li, dd, figcaption, .banner { overflow-wrap: anywhere; }
.controls input, .controls select { width: 100%; } .pick { max-width: 100%; } .pick select { min-width: 0; }
blockquote { margin: 0; white-space: pre-wrap; } .by { margin: .2rem 0 0; font-size: .85rem; }
pre { overflow-x: auto; padding: 1rem; border-radius: .5rem; background: var(--card); font-size: .85rem; }
footer { margin-top: 3rem; }
@media print { :root { color-scheme: light; } body { max-width: none; font: 9pt/1.35 system-ui, sans-serif; } html { font-size: 9pt; } table { font-size: 8pt; } nav, .controls, .pick, #state, #results, details { display: none; } #examples[hidden] { display: block; }
  .card, figure, tr, .texts li { break-inside: avoid; } .banner { border: 2px solid var(--red); print-color-adjust: exact; }
  .cards { grid-template-columns: repeat(3, 1fr); } .card.wide { grid-column: span 2; } .plots { grid-template-columns: 1fr 1fr; } .groups { columns: 2; }
  h2, h3 { break-after: avoid; } pre { white-space: pre-wrap; } .scroll { overflow: visible; } }
"""
