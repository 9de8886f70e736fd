"""The style of the debug page, and the short script that refreshes it.

Guarantees
- The page is complete without the script. The script only reloads it and keeps what was opened, filtered or scrolled.
- The content security policy names the hashes of this style and this script, so nothing else on the page runs.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b1f24; --soft: #59636e; --faint: #98a1ab; --line: #e2e6ea; --hover: #f3f5f8;
  --link: #0b5cad; --good: #1a7f45; --good-bg: #e3f4e9; --warn: #8a5300; --warn-bg: #fdf0d5; --bad: #b4232a; --bad-bg: #fde7e7;
  --quiet-bg: #eceff3; --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1318; --card: #171c23; --ink: #e4e8ed; --soft: #9aa5b1; --faint: #66717d; --line: #2a313a; --hover: #1d232b;
    --link: #77b5ff; --good: #5fd08d; --good-bg: #14301f; --warn: #f0b95a; --warn-bg: #372a10; --bad: #ff8b87; --bad-bg: #431b1d;
    --quiet-bg: #242b34;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink); font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  font-variant-numeric: tabular-nums;
}
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
header, main, footer { max-width: 1500px; margin: 0 auto; padding: 0 20px; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 12px; padding-top: 16px; padding-bottom: 12px; }
h1 { font-size: 20px; line-height: 1.3; margin: 0; overflow-wrap: anywhere; }
h1 .mono { font-size: 18px; }
h2 { font-size: 15px; margin: 0; }
h2 small, header small { font-weight: normal; font-size: 13px; color: var(--soft); }
header .right { margin-left: auto; display: flex; flex-wrap: wrap; align-items: center; gap: 10px; color: var(--soft); font-size: 13px; }
button, input[type=search] {
  font: inherit; font-size: 13px; color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 3px 10px;
}
button { cursor: pointer; min-width: 5.5em; }
button:hover { background: var(--hover); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin: 0 0 14px; scroll-margin-top: 10px; overflow: hidden; }
section > .title { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 12px; padding: 11px 16px; }
section > .title input { margin-left: auto; width: 15em; max-width: 100%; }
section > p { margin: 0; padding: 0 16px 13px; color: var(--soft); }
.badge {
  display: inline-block; border-radius: 99px; padding: 0 9px; font-size: 12px; line-height: 20px; white-space: nowrap; color: var(--soft);
  background: var(--quiet-bg);
}
.badge.good { color: var(--good); background: var(--good-bg); }
.badge.warn { color: var(--warn); background: var(--warn-bg); }
.badge.bad { color: var(--bad); background: var(--bad-bg); }
.verdict { border-left: 5px solid var(--good); }
.verdict.warn { border-left-color: var(--warn); }
.verdict.bad { border-left-color: var(--bad); }
.verdict.quiet { border-left-color: var(--faint); }
.verdict > .title { padding-top: 13px; }
.verdict h2 { font-size: 18px; }
.verdict.good h2 { color: var(--good); }
.verdict.warn h2 { color: var(--warn); }
.verdict.bad h2 { color: var(--bad); }
.verdict ul { list-style: none; margin: 0; padding: 0 16px 8px; }
.verdict li { display: grid; grid-template-columns: 5.6em minmax(0, 1fr); gap: 10px; padding: 5px 0; border-top: 1px solid var(--line); }
.verdict li .badge { justify-self: start; align-self: start; }
.verdict li b { overflow-wrap: anywhere; }
.verdict li span.words { overflow-wrap: anywhere; }
.figures { display: grid; grid-template-columns: repeat(8, minmax(0, 1fr)); gap: 12px; margin: 0 0 14px; }
.figure { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px 11px; min-width: 0; }
.figure dt { color: var(--soft); font-size: 12.5px; }
.figure dd { margin: 0; font-size: 20px; font-weight: 600; line-height: 1.3; overflow-wrap: anywhere; }
.figure dd.note { font-size: 12.5px; font-weight: normal; color: var(--soft); }
.figure .bad { color: var(--bad); } .figure .warn { color: var(--warn); } .figure .good { color: var(--good); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, .grid.head { color: var(--soft); font-weight: 500; font-size: 12px; text-align: left; white-space: nowrap; }
th, td { padding: 6px 10px; vertical-align: top; border-top: 1px solid var(--line); }
th:first-child, td:first-child { padding-left: 16px; }
th:last-child, td:last-child { padding-right: 16px; }
table.compact { width: auto; min-width: 50%; }
tbody tr:hover { background: var(--hover); }
.number { text-align: right; white-space: nowrap; }
.zero, .none, .faint { color: var(--faint); }
td.bad, .bad-text { color: var(--bad); font-weight: 600; }
td.warn, .warn-text { color: var(--warn); font-weight: 600; }
.soft { color: var(--soft); }
.nowrap { white-space: nowrap; }
.key, .mono { font-family: var(--mono); font-size: 12.5px; overflow-wrap: anywhere; }
td.keys { min-width: 13em; max-width: 28em; }
td.words { min-width: 17em; overflow-wrap: anywhere; }
.error { font-family: var(--mono); font-size: 12.5px; overflow-wrap: anywhere; white-space: pre-wrap; }
.cause { display: block; overflow-wrap: anywhere; }
.cause.quiet { color: var(--soft); }
pre { font: 12.5px/1.5 var(--mono); margin: 6px 0 4px; padding: 9px 12px; background: var(--page); border: 1px solid var(--line); border-radius: 6px;
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 30em; overflow-y: auto; }
summary { cursor: pointer; }
details.more > summary { list-style: none; }
details.more > summary::after { content: " more"; color: var(--link); font-size: 12px; }
details.more[open] > summary::after { content: " less"; }
.controllers { min-width: 720px; }
.grid {
  display: grid; grid-template-columns: minmax(170px, 3fr) 76px 68px repeat(3, 58px) 84px 76px 66px 66px 70px 66px; gap: 0 8px; padding: 6px 16px;
  border-top: 1px solid var(--line); align-items: baseline; font-size: 13px;
}
.grid > :first-child { overflow-wrap: anywhere; }
.grid > .badge { justify-self: start; }
.controllers summary { list-style: none; }
.controllers summary::-webkit-details-marker { display: none; }
.controllers summary .name::before { content: "▸"; display: inline-block; width: 1.1em; color: var(--faint); font-weight: normal; }
.controllers details[open] summary .name::before { content: "▾"; }
.controllers summary:hover { background: var(--hover); }
.controllers details[open] { box-shadow: inset 3px 0 0 var(--line); }
.name { font-weight: 600; }
.inside { padding: 0 0 10px 14px; }
.inside h3 { font-size: 12.5px; margin: 8px 16px 4px; color: var(--soft); font-weight: 600; }
.inside p { margin: 4px 16px; color: var(--soft); }
meter { width: 46px; height: 10px; vertical-align: baseline; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 7px 22px; margin: 0; padding: 2px 16px 15px; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.facts ol { margin: 0; padding-left: 1.3em; }
#lost { display: none; background: var(--bad-bg); color: var(--bad); padding: 8px 20px; font-weight: 600; text-align: center; }
#lost.shown { display: block; position: sticky; top: 0; z-index: 1; }
.script { display: none; }
.scripted .script { display: revert; }
footer { color: var(--soft); font-size: 12.5px; padding-top: 2px; padding-bottom: 26px; display: flex; flex-wrap: wrap; gap: 4px 16px; }
@media (max-width: 1180px) {
  .figures { grid-template-columns: repeat(4, minmax(0, 1fr)); }
  .grid { grid-template-columns: minmax(130px, 3fr) 76px 60px repeat(3, 54px) 72px 66px 56px; }
  .wide { display: none; }
}
@media (max-width: 700px) {
  header, main, footer { padding-left: 10px; padding-right: 10px; }
  header .right { margin-left: 0; }
  .verdict li { grid-template-columns: minmax(0, 1fr); gap: 2px; }
  .facts { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .facts dd { margin-bottom: 9px; }
  .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 8px; }
  .figure dd { font-size: 18px; }
  section > .title input { margin-left: 0; width: 100%; }
}
"""

SCRIPT = """
"use strict";
(() => {
  const seconds = 5, page = document.documentElement, kept = (name, value) => {
    try { if (value !== undefined) sessionStorage.setItem(name, value); return sessionStorage.getItem(name); } catch { return null; }
  };
  let paused = kept("paused") === "yes", asked = 0, heard = Date.now();
  const get = (id) => document.getElementById(id);
  const show = () => {
    page.classList.add("scripted");
    if (get("pause")) get("pause").textContent = paused ? "Go on" : "Pause";
    if (get("refreshing")) get("refreshing").textContent = paused ? "paused" : "refreshes every " + seconds + " s";
    filter();
  };
  const filter = () => {
    const words = (get("filter") ? get("filter").value : "").toLowerCase().split(/\\s+/).filter(Boolean);
    for (const row of document.querySelectorAll("[data-filter]")) {
      const text = row.dataset.filter.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  };
  const reveal = () => {
    const target = location.hash && get(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  const reading = () => String(getSelection()) !== "";
  const load = async () => {
    asked = Date.now();
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!fresh.querySelector("main") || paused || reading()) return;
      const open = [...document.querySelectorAll("details[open][id]")].map((each) => each.id);
      const typed = get("filter") ? get("filter").value : "", focus = document.activeElement && document.activeElement.id;
      const places = [...document.querySelectorAll(".scroll[id]")].map((each) => [each.id, each.scrollLeft]);
      for (const part of ["header", "main", "footer"]) document.querySelector(part).replaceWith(fresh.querySelector(part));
      for (const id of open) if (get(id)) get(id).open = true;
      for (const [id, left] of places) if (get(id)) get(id).scrollLeft = left;
      if (get("filter")) get("filter").value = typed;
      if (focus && get(focus)) get(focus).focus({ preventScroll: true });
      document.title = fresh.title;
      heard = Date.now();
      get("lost").className = "";
    } catch {
      get("lost").textContent = "No answer for " + Math.round((Date.now() - heard) / 1000) + " s: what you see is old.";
      get("lost").className = "shown";
    }
    show();
  };
  document.addEventListener("click", (event) => {
    if (event.target.id !== "pause") return;
    paused = !paused;
    kept("paused", paused ? "yes" : "no");
    show();
    if (!paused) load();
  });
  document.addEventListener("input", (event) => { if (event.target.id === "filter") filter(); });
  addEventListener("hashchange", reveal);
  show();
  reveal();
  setInterval(() => {
    if (!paused && !document.hidden && !reading() && Date.now() - asked >= seconds * 1000) load();
  }, 1000);
})();
"""


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


#: What a browser may do with the page: this style, this script, and asking the same server again.
POLICY = (
    f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
