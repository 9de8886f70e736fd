// Ranks the sections of the site (sections.js) by BM25 and lists the best.
const SHOWN = 20, EXCERPT = 200, K = 1.4, B = 0.6;
const COMMON = /^(a|an|and|are|can|do|does|for|give|how|i|in|is|it|mean|my|of|on|or|steersman|the|to|what|when|where|which|with)$/;
const stem = (word) => (word.length > 4 ? word.replace(/(ies|es|s|ed|ing)$/, "") : word);
const words = (text) => text.toLowerCase().match(/[\p{L}\d]+/gu) || [];
const terms = (text) => words(text).map(stem);

function ranked(query) {
  const rare = words(query).filter((word) => !COMMON.test(word));
  const asked = [...new Set(rare.map(stem))];
  const counted = SECTIONS.map(([heading, title, address, text, project]) => {
    const found = terms(text), counts = new Map();
    const add = (given, weight) =>
      given.forEach((word) => asked.includes(word) && counts.set(word, (counts.get(word) || 0) + weight));
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
  const best = counted.filter((each) => each.score > 0).sort((one, other) => other.score - one.score).slice(0, SHOWN);
  return [best, asked];
}

// The part of a text that has the most of the words.
function excerpt(text, asked) {
  let start = 0, most = 0;
  for (let place = 0; place < text.length; place += EXCERPT / 4) {
    const part = text.slice(place, place + EXCERPT).toLowerCase(), has = asked.filter((word) => part.includes(word)).length;
    if (has > most) [start, most] = [place, has];
  }
  const end = start + EXCERPT;
  const part = text.slice(start, end);
  return (start ? part.replace(/^\S*/, "…") : part) + (end < text.length ? "…" : "");
}

const query = new URLSearchParams(location.search).get("q") || "";
const list = document.querySelector("ul.sections"), [best, asked] = ranked(query);
document.querySelector(".sidebar-search").value = query;
for (const { heading, title, address, text } of best) {
  const item = list.appendChild(document.createElement("li"));
  const link = item.appendChild(document.createElement("a"));
  link.href = address;
  link.textContent = heading === title ? title : `${title}: ${heading}`;
  item.appendChild(document.createElement("p")).textContent = excerpt(text, asked);
}
if (query && !best.length) list.append("No section has these words.");
