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
    const words = (get("filter") ? get("filter").value : "").toLowerCase().split(/\s+/).filter(Boolean);
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
