// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/page_style.h"

namespace lockstep::report {

namespace {

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2026;--dim:#59626d;
--line:#d9dee4;--soft:#f4f6f8;--good:#156c40;--bad:#a8241b;--warn:#8a5a00;
--cell:#084081;--strong:#fff;--c0:#0072b2;--c1:#c24f00;--c2:#00805e;--c3:#a8508a}
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e4e7eb;
--dim:#9da7b3;--line:#363d46;--soft:#1d2228;--good:#5fd39a;--bad:#ff8a80;
--warn:#f0b95a;--cell:#7cc4ff;--strong:#0b1015;--c0:#56b4e9;--c1:#ff9d4d;
--c2:#3fcf9f;--c3:#e39ccb}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1320px;padding:20px 16px 48px;background:var(--paper);
color:var(--ink);font:15px/1.5 system-ui,"Segoe UI","Noto Sans","Noto Sans CJK SC",
"PingFang SC","Microsoft YaHei",sans-serif;overflow-wrap:break-word}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .2rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2.2rem 0 .7rem;padding-bottom:.25rem;
border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.2rem 0 .4rem}
p{margin:.3rem 0}
.dim{color:var(--dim)}
.state{display:inline-block;font-weight:600;border:1px solid currentColor;
border-radius:1em;padding:0 .65em;margin-right:.5em}
.finished{color:var(--good)}.failed,.killed{color:var(--bad)}
.interrupted,.stopped,.unknown{color:var(--warn)}.running{color:var(--c0)}
.why{border-left:3px solid var(--bad);padding:.1rem .8rem;overflow-wrap:anywhere}
dl.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));
gap:10px;margin:16px 0 0}
dl.cards div{background:var(--soft);border:1px solid var(--line);border-radius:8px;
padding:8px 12px}
dl.cards dt{color:var(--dim);font-size:.84rem}
dl.cards dd{margin:0;font-size:1.18rem;font-weight:600;overflow-wrap:anywhere}
dl.cards small{display:block;font-size:.8rem;font-weight:400;color:var(--dim)}
.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(300px,100%),1fr));
gap:8px 16px}
svg{max-width:100%;height:auto}
svg.panel{width:100%}
svg text{fill:var(--ink)}
svg .grid{stroke:var(--line)}
svg .c0 polyline{stroke:var(--c0)}svg .c0 g{fill:var(--c0)}
svg .c1 polyline{stroke:var(--c1)}svg .c1 g{fill:var(--c1)}
svg .c2 polyline{stroke:var(--c2)}svg .c2 g{fill:var(--c2)}
svg .c3 polyline{stroke:var(--c3)}svg .c3 g{fill:var(--c3)}
svg .paper{fill:none}svg .frame{stroke:var(--dim)}
svg .cell{fill:var(--cell)}svg text.strong{fill:var(--strong)}
.scroll{overflow-x:auto;max-width:100%}
.scroll svg{max-width:none}
.fit svg{width:100%;min-width:620px;max-width:1000px}
.scroll:focus-visible{outline:2px solid var(--c0)}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(420px,100%),1fr));
gap:8px 32px;align-items:start}
table{border-collapse:collapse;font-size:.92rem;margin:.2rem 0 .8rem}
caption{text-align:left;color:var(--dim);padding:.2rem 0;font-size:.88rem}
th,td{text-align:left;padding:3px 14px 3px 0;border-bottom:1px solid var(--line);
vertical-align:top}
thead th{color:var(--dim);font-weight:600;white-space:nowrap}
tbody th{font-weight:500;max-width:22em}
td{overflow-wrap:anywhere;min-width:3.2em}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
td.n{overflow-wrap:normal}
td:last-child:not(.n){min-width:13em}
.bar{display:inline-block;height:.7em;background:var(--c0);border-radius:2px;
min-width:1px}
.track{display:inline-block;width:120px;text-align:left}
@media (max-width:560px){.track{width:44px}th,td{padding-right:9px}}
.samples{display:grid;grid-template-columns:repeat(auto-fill,minmax(132px,1fr));
gap:12px;list-style:none;margin:0;padding:0}
.samples.wide{grid-template-columns:repeat(auto-fill,minmax(min(300px,100%),1fr))}
.samples li{background:var(--soft);border:1px solid var(--line);border-radius:8px;
padding:8px;font-size:.86rem;line-height:1.35;overflow-wrap:anywhere}
.samples img{display:block;width:100%;image-rendering:pixelated;border-radius:4px;
margin-bottom:6px;background:#fff}
.samples .smooth{image-rendering:auto}
.samples .name{display:block;color:var(--dim);font-size:.78rem;margin-top:3px;
max-height:3.9em;overflow:hidden}
.mark{font-weight:700}.right{color:var(--good)}.wrong{color:var(--bad)}
pre{background:var(--soft);border:1px solid var(--line);border-radius:8px;
padding:8px 12px;margin:.3rem 0 .8rem;white-space:pre-wrap;overflow-wrap:anywhere;
font-size:.86rem}
ul.log{margin:.3rem 0;padding-left:1.2rem}
ul.log li{overflow-wrap:anywhere}
details{margin:.4rem 0}
summary{cursor:pointer;color:var(--c0)}
footer{margin-top:2.5rem;color:var(--dim);font-size:.85rem}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--dim:#444;--line:#bbb;
--soft:#fff;--good:#156c40;--bad:#a8241b;--warn:#8a5a00;--cell:#084081;--strong:#fff;
--c0:#0072b2;--c1:#c24f00;--c2:#00805e;--c3:#a8508a}
body{max-width:none;padding:0;font-size:10pt}
h2,h3,caption{break-after:avoid}svg,li,tr,dl.cards div{break-inside:avoid}
.scroll{overflow:visible}.scroll svg{max-width:100%}
details::details-content{content-visibility:visible;block-size:auto}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)css";

} // namespace

std::string_view page_style() {
  return kStyle;
}

} // namespace lockstep::report
