"""The style sheet of the HTML report: one column that fits a phone, light and dark, nothing to load."""

from __future__ import annotations

COLORS = 6
"""Colours c0 to c5; configurations beyond begin again."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #60646c; --paper: #fcfcfd; --card: #fff;
  --rule: #e4e6ea; --shade: #f3f4f6; --c0: #2a63d6; --c1: #c2690a; --c2: #0b8457; --c3: #8a3fc4;
  --c4: #c42b45; --c5: #0a7f99; --link: #2456bd }
@media (prefers-color-scheme: dark) { :root { --ink: #e9ebee; --soft: #9ba1ab; --paper: #121417;
  --card: #1a1d21; --rule: #2c3036; --shade: #22262b; --c0: #7aa7ff; --c1: #f0a04b; --c2: #4cc38a;
  --c3: #c08ff0; --c4: #ff7a8d; --c5: #52c4dc; --link: #8db4ff } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5; overflow-wrap: anywhere;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang TC", "Microsoft JhengHei",
  "Noto Sans CJK TC", sans-serif; -webkit-text-size-adjust: 100% }
main { max-width: 46rem; margin: 0 auto; padding: 2.5rem 1.1rem 4rem }
h1 { font-size: 1.75rem; line-height: 1.2; letter-spacing: -.015em; margin: 0 }
h2 { font-size: 1.15rem; letter-spacing: -.005em; margin: 3rem 0 .35rem }
p { margin: .4rem 0 } .soft { color: var(--soft) } .small { font-size: .86rem }
a { color: var(--link); text-decoration-thickness: 1px; text-underline-offset: .15em }
ul { margin: .6rem 0; padding-left: 1.1rem } li { margin: .25rem 0 }
.verdicts { list-style: none; margin: 1.4rem 0 0; padding: 0; border-top: 1px solid var(--rule) }
.verdicts li { margin: 0; padding: .6rem 0; border-bottom: 1px solid var(--rule) }
.notice { border-left: 3px solid var(--c1); padding: .1rem .8rem; margin: .8rem 0; color: var(--soft) }
.scroll { overflow-x: auto; margin: .8rem 0 }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th { font-weight: 600; text-align: left; white-space: nowrap }
th, td { padding: .5rem .9rem .5rem 0; border-bottom: 1px solid var(--rule); vertical-align: top }
th:last-child, td:last-child { padding-right: 0 }
td .range { display: block; color: var(--soft); font-size: .78rem; white-space: nowrap }
td.best b { color: var(--ink) } td b { font-weight: 400 } td.best b { font-weight: 700 }
.settings th { font-weight: 400; color: var(--soft); width: 34% ; white-space: normal }
.forest { display: grid; grid-template-columns: minmax(4.5rem, max-content) 1fr max-content;
  gap: .55rem .9rem; align-items: center; margin: 1rem 0 }
.track { position: relative; height: 1.1rem; background: var(--shade); border-radius: .2rem }
.track i { position: absolute; top: 50%; height: 2px; margin-top: -1px; background: currentColor }
.track b { position: absolute; top: 50%; width: .7rem; height: .7rem; margin: -.35rem 0 0 -.35rem;
  border-radius: 50%; background: currentColor }
.value { font-variant-numeric: tabular-nums; font-weight: 600 }
.c0 { --c: var(--c0) } .c1 { --c: var(--c1) } .c2 { --c: var(--c2) } .c3 { --c: var(--c3) }
.c4 { --c: var(--c4) } .c5 { --c: var(--c5) }
.track.c0, .track.c1, .track.c2, .track.c3, .track.c4, .track.c5 { color: var(--c) }
figure { margin: 1rem 0; padding: 1rem; background: var(--card); border: 1px solid var(--rule);
  border-radius: .6rem }
figcaption { font-size: .9rem; margin-bottom: .6rem }
svg { display: block; width: 100%; height: auto }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft) }
svg .grid { stroke: var(--rule); fill: none } svg .axis, svg .tick { stroke: var(--soft); fill: none }
svg .line { stroke: var(--c); stroke-width: 2; fill: none; stroke-linejoin: round }
svg .line.c1 { stroke-dasharray: 6 3 } svg .line.c2 { stroke-dasharray: 2 3 }
svg .line.c4 { stroke-dasharray: 8 3 2 3 } svg .dot, svg .bar { fill: var(--c) }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .9rem; margin: 0 0 .4rem }
.key::before { content: ""; display: inline-block; width: .7rem; height: .7rem; border-radius: 50%;
  background: var(--c); margin-right: .4rem }
details { margin: .6rem 0 } summary { cursor: pointer; color: var(--link) }
article { border-top: 1px solid var(--rule); padding: 1.1rem 0 .9rem }
article h3 { font-size: 1.02rem; margin: 0 0 .3rem; font-weight: 600 }
article h4 { font-size: .78rem; margin: .9rem 0 .3rem; color: var(--soft); font-weight: 600 }
.answer { margin: 0 0 .55rem; padding-left: .8rem; border-left: 2px solid var(--rule) }
.answer.right { border-left-color: var(--c2) }
.answer .where { font-size: .92rem }
.answer q { display: block; quotes: none; color: var(--soft); font-size: .86rem }
@media (min-width: 44rem) { .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.8rem } }
@media (max-width: 30rem) { figure { padding: .8rem .6rem } svg text { font-size: 16px }
  th, td { padding-right: .5rem } td .range { white-space: normal }
  svg .line { stroke-width: 3 } svg .grid { stroke-width: 1.5 } }
@media print { main { max-width: none; padding: 0 } figure, article { break-inside: avoid } }
"""
