// Sphinx gives many pages the same score and sorts those by title. Guides come before pages about the project.
const PROJECT = /^(designs\/|tests\/|examples\/|CHANGELOG|ARCHITECTURE|CONTRIBUTING|SECURITY|README|docs\/benchmarks)/;
var Scorer = { // searchtools.js declares it with var, too
  score: ([document, title, anchor, description, score]) =>
    score - (PROJECT.test(document) ? 20 : 0) - (document === "docs/reference" && !anchor ? 1 : 0),
  objNameMatch: 40,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
