"""Style and behaviour of the pages that ``--html`` writes: no request leaves them."""

LIGHT = """
  color-scheme: light;
  --paper: #faf9f6; --card: #ffffff; --ink: #1c1b1a; --soft: #6d6a65; --line: #e6e2da; --shade: #f3f0ea; --shade2: #ebe7df;
  --number: #ffe2b0; --number-ink: #6b3d00; --number-line: #f0a93b; --strong: #d97706;
  --sign: #d9467a; --exponent: #2e9e6b; --mantissa: #3b74d9; --zero: .16;
  --shadow: 0 1px 2px rgb(40 30 10 / .05), 0 8px 24px -12px rgb(40 30 10 / .14);
"""

DARK = """
  color-scheme: dark;
  --paper: #131417; --card: #1b1d21; --ink: #eceae6; --soft: #98958f; --line: #2c2f35; --shade: #25282d; --shade2: #2f3339;
  --number: #4a3413; --number-ink: #ffd491; --number-line: #b97a1c; --strong: #f5a524;
  --sign: #f472a6; --exponent: #4cc38a; --mantissa: #6ea0ff; --zero: .18;
  --shadow: 0 1px 2px rgb(0 0 0 / .4), 0 12px 32px -16px rgb(0 0 0 / .7);
"""

PALETTES = f"""
:root {{ {LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {DARK} }} }}
:root[data-theme=dark] {{ {DARK} }}
"""

BASE = """
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 ui-sans-serif, system-ui, -apple-system, "Segoe UI", Inter, Roboto, sans-serif }
main { max-width: 1040px; margin: 0 auto; padding: 40px 24px 72px }
code, .mono, .tokens, .text, td.figure { font-family: ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, "DejaVu Sans Mono", monospace }
header { display: flex; align-items: center; gap: 12px; margin-bottom: 28px }
.mark { flex: none; display: grid; place-items: center; width: 34px; height: 34px; border-radius: 10px; background: var(--strong); color: #fff; font: 700 17px ui-monospace, monospace }
h1 { font-size: 21px; font-weight: 650; letter-spacing: -.015em; margin: 0 }
h2 { font-size: 12px; font-weight: 650; letter-spacing: .08em; text-transform: uppercase; color: var(--soft); margin: 36px 4px 10px }
h3 { font-size: 17px; font-weight: 650; letter-spacing: -.01em; margin: 0 }
button { margin-left: auto; border: 1px solid var(--line); background: var(--card); color: var(--soft); border-radius: 999px; padding: 6px 14px; font: inherit; font-size: 13px; cursor: pointer }
button:hover { color: var(--ink); border-color: var(--soft) }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 16px; padding: 22px 24px; box-shadow: var(--shadow); margin-bottom: 18px }
.head { display: flex; align-items: baseline; gap: 12px; flex-wrap: wrap; margin-bottom: 14px }
.head .remark { color: var(--soft); font-size: 14px }
.scroll { overflow-x: auto; margin: 0 -8px; padding: 0 8px }
table { border-collapse: collapse; width: 100%; font-size: 14px }
th { text-align: left; font-weight: 500; font-size: 12px; color: var(--soft); padding: 0 18px 8px 0; white-space: nowrap }
td { padding: 7px 18px 7px 0; border-top: 1px solid var(--line); vertical-align: middle; white-space: nowrap }
td.figure, th.figure { text-align: right; font-variant-numeric: tabular-nums }
td:last-child, th:last-child { padding-right: 0 }
.legend { display: flex; flex-wrap: wrap; gap: 8px 22px; font-size: 13px; color: var(--soft); margin: 0 4px 14px }
.legend span { display: inline-flex; align-items: center; gap: 7px }
.legend em { width: 14px; height: 14px; border-radius: 4px; display: inline-block }
#tip { position: fixed; z-index: 9; pointer-events: none; opacity: 0; transition: opacity .1s; background: var(--ink); color: var(--paper); border-radius: 9px; padding: 8px 12px; font-size: 13px; line-height: 1.5; white-space: pre; max-width: 90vw; overflow: hidden; text-overflow: ellipsis; font-family: ui-monospace, Menlo, "DejaVu Sans Mono", monospace }
#tip.on { opacity: 1 }
footer { color: var(--soft); font-size: 13px; margin: 28px 4px 0 }
@media (max-width: 600px) { main { padding: 24px 14px 48px } .card { padding: 18px 16px; border-radius: 12px } }
@media print { button { display: none } .card { break-inside: avoid; box-shadow: none } }
"""  # noqa: E501

INSPECT = """
.text { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 17px; line-height: 1.9 }
.n { background: var(--number); color: var(--number-ink); border-radius: 5px; padding: 2px 4px; box-shadow: inset 0 -2px 0 var(--number-line); font-weight: 600; cursor: default }
.tokens { display: flex; flex-wrap: wrap; row-gap: 8px; column-gap: 3px; font-size: 14px; line-height: 1.35 }
.t { display: inline-flex; flex-direction: column; align-items: center; cursor: default }
.t > b { font-weight: 400; white-space: pre; background: var(--shade); border-radius: 5px; padding: 3px 5px; transition: box-shadow .12s }
.t:nth-child(even) > b { background: var(--shade2) }
.t i { font-style: normal; opacity: .38 }
.t.num > b { background: var(--number); color: var(--number-ink); font-weight: 600; box-shadow: inset 0 -2px 0 var(--number-line) }
.t.part > b { color: var(--soft); font-size: 12px; padding-block: 4.5px }
.t small { font-size: 11px; color: var(--strong); min-height: 1.35em }
.lit, .t.lit > b { outline: 2px solid var(--strong); outline-offset: 1px }
.columns { margin-top: 20px }
.bits { display: inline-flex; gap: 6.5px; vertical-align: middle }
.bits u { display: inline-flex; gap: 1.5px }
.bits s { width: 8px; height: 18px; border-radius: 2px; background: var(--mantissa) }
.bits u:nth-child(3n+1) s { background: var(--sign) }
.bits u:nth-child(3n+2) s { background: var(--exponent) }
.bits s.o { opacity: var(--zero) }
.dials { display: inline-flex; gap: 4px; vertical-align: middle }
.dials svg { width: 24px; height: 24px; stroke: var(--mantissa); fill: none; stroke-width: 2; stroke-linecap: round }
.dials circle { stroke: var(--line); stroke-width: 1.5 }
.cost { display: grid; grid-template-columns: max-content 1fr max-content; gap: 10px 16px; align-items: center; font-size: 14px }
.cost .bar { height: 14px; border-radius: 4px; background: var(--shade); overflow: hidden; display: flex }
.cost .bar u { background: var(--shade2); height: 100%; filter: brightness(.93) }
:root[data-theme=dark] .cost .bar u { filter: brightness(1.5) }
.cost .bar u.num { background: var(--number-line); filter: none !important }
.cost .mono { font-variant-numeric: tabular-nums; color: var(--soft) }
.legend small { color: var(--strong); font: 600 13px ui-monospace, monospace }
"""  # noqa: E501

STATS = """
.advice { border-color: var(--number-line) }
.advice .take { display: inline-block; margin: 0 0 12px; padding: 6px 12px; border-radius: 8px; background: var(--number); color: var(--number-ink); font-size: 16px; font-weight: 600; overflow-wrap: anywhere }
.advice ul { margin: 0; padding-left: 20px }
.advice li { margin: 4px 0 }
.advice li.remark { color: var(--soft) }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(45%, 190px), 1fr)); gap: 14px 24px; margin: 0 }
.tiles dt { font-size: 12px; color: var(--soft) }
.tiles dd { margin: 0 }
.tiles dd b { font-size: 20px; font-weight: 650; letter-spacing: -.01em; font-variant-numeric: tabular-nums; display: block; overflow-wrap: anywhere }
.tiles dd span { font-size: 13px; color: var(--soft) }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); column-gap: 18px; align-items: start }
.charts > div { min-width: 0 }
figure { margin: 0 }
figcaption { margin-bottom: 12px }
figcaption span { display: block; font-size: 13px; color: var(--soft) }
.chart { display: block; width: 100%; height: auto; overflow: visible }
.chart text { font: 11px ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace; fill: var(--soft) }
.chart line { stroke: var(--line); stroke-width: 1 }
.chart .mark { stroke: var(--ink); stroke-width: 2 }
.s0 { fill: var(--mantissa); background: var(--mantissa) }
.s1 { fill: var(--number-line); background: var(--number-line) }
.s2 { fill: var(--sign); background: var(--sign) }
.s3 { fill: var(--soft); background: var(--soft) }
.key { display: inline-flex; flex-wrap: wrap; gap: 4px 16px; font-size: 13px; color: var(--soft); margin-top: 8px }
.key i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px }
.key i.tick { width: 14px; height: 2px; border-radius: 0; background: var(--ink); vertical-align: 4px }
details { margin-top: 10px; font-size: 14px }
summary { color: var(--soft); font-size: 13px; cursor: pointer; border-radius: 6px }
summary:focus-visible, button:focus-visible, .scroll:focus-visible { outline: 2px solid var(--strong); outline-offset: 2px }
details table { margin-top: 10px }
details .scroll { max-height: 320px; overflow: auto }
tbody th { font-size: 14px; color: var(--ink); border-top: 1px solid var(--line); padding: 7px 18px 7px 0; font-family: ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace; font-weight: 500 }
tr.taken th { color: var(--number-ink); background: var(--number); box-shadow: -8px 0 0 var(--number); border-radius: 4px }
td.bar, th.bar { width: 40%; min-width: 90px }
td.bar svg { display: block; width: 100%; height: 12px; border-radius: 3px; background: var(--shade) }
@media (max-width: 600px) { .charts td, .charts th { padding-right: 10px } .charts td.bar, .charts th.bar { min-width: 44px; width: 25% } }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
.note { color: var(--soft); font-size: 14px; margin: 0 4px 14px }
"""  # noqa: E501

# The theme is the system's until the button is pressed; everything with data-n lights up together.
BEHAVIOUR = """
const root = document.documentElement, tip = document.getElementById("tip"), button = document.querySelector("button");
const wanted = matchMedia("(prefers-color-scheme: dark)");
const show = dark => { root.dataset.theme = dark ? "dark" : "light"; button.textContent = dark ? "Light" : "Dark" };
show(wanted.matches);
wanted.addEventListener("change", event => show(event.matches));
button.addEventListener("click", () => show(root.dataset.theme !== "dark"));
let lit = [];
document.addEventListener("pointerover", event => {
  lit.forEach(one => one.classList.remove("lit"));
  lit = [];
  const told = event.target.closest("[data-tip]"), number = event.target.closest("[data-n]");
  if (number) lit = [...document.querySelectorAll(`[data-n="${number.dataset.n}"]`)];
  lit.forEach(one => one.classList.add("lit"));
  tip.classList.toggle("on", !!told);
  if (told) tip.textContent = told.dataset.tip;
});
document.addEventListener("pointermove", event => {
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 12);
  const below = event.clientY + 20, top = below + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 12 : below;
  tip.style.left = Math.max(8, left) + "px";
  tip.style.top = top + "px";
});
"""
