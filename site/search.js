// Ranks the sections of the site (sections.js) by BM25 and lists the best above Sphinx's pages.
const SHOWN = 8, EXCERPT = 160, K = 1.4, B = 0.6;
const stem = (word) => (word.length > 4 ? word.replace(/(ies|es|s|ed|ing)$/, "") : word);
const terms = (text) => (text.toLowerCase().match(/[\p{L}\d_]+/gu) || []).map(stem);

function ranked(query) {
  const asked = [...new Set(terms(query))];
  const counted = SECTIONS.map(([heading, title, address, text, project]) => {
    const found = terms(text), counts = new Map();
    const add = (words, weight) =>
      words.forEach((word) => asked.includes(word) && counts.set(word, (counts.get(word) || 0) + weight));
    add(found, 1);
    add(terms(heading), 5);
    add(terms(title), 2);
    return { heading, title, address, text, project, counts, length: found.length };
  });
  const average = counted.reduce((sum, each) => sum + each.length, 0) / counted.length;
  const weights = new Map(asked.map((word) => {
    const having = counted.filter((each) => each.counts.has(word)).length;
    return [word, Math.log(1 + (counted.length - having + 0.5) / (having + 0.5))];
  }));
  for (const each of counted) {
    each.score = 0;
    for (const [word, count] of each.counts)
      each.score += (weights.get(word) * count * (K + 1)) / (count + K * (1 - B + (B * each.length) / average));
    // A section with all words is worth more than one that repeats a rare word.
    each.score *= (each.counts.size / (asked.length || 1)) ** 2 * (each.project ? 0.5 : 1);
  }
  return counted.filter((each) => each.score > 0).sort((one, other) => other.score - one.score).slice(0, SHOWN);
}

function excerpt(text, query) {
  const words = query.toLowerCase().match(/[\p{L}\d_]+/gu) || [];
  const places = words.map((word) => text.toLowerCase().indexOf(stem(word))).filter((place) => place >= 0);
  const start = Math.max(Math.min(...places, text.length) - 40, 0);
  return (start ? "…" : "") + text.slice(start, start + EXCERPT) + (start + EXCERPT < text.length ? "…" : "");
}

document.addEventListener("DOMContentLoaded", () => {
  const query = new URLSearchParams(location.search).get("q");
  const place = document.getElementById("search-results");
  if (!query || !place) return;
  const list = document.createElement("ul");
  list.className = "sections";
  for (const { heading, title, address, text } of ranked(query)) {
    const item = list.appendChild(document.createElement("li"));
    const link = item.appendChild(document.createElement("a"));
    link.href = address;
    link.textContent = heading === title ? title : `${title}: ${heading}`;
    item.appendChild(document.createElement("p")).textContent = excerpt(text, query);
  }
  place.before(list);
});
