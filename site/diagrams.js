// Draws the diagrams of a page with graph.js, in the colors of the theme. Without JavaScript they stay text.
// Of mermaid's language it reads what our pages have: an arrow on each line, between states or labeled boxes.
for (const block of document.querySelectorAll(".highlight-mermaid")) {
  const nodes = new Map(), edges = [];
  const node = (text, outside) => {
    const [, name, label = name] = text.match(/^(\[\*\]|\w+)(?:[[(]+(.*?)[\])]+)?$/);
    const id = name === "[*]" ? outside : name, [title, note] = (name === "[*]" ? id : label).split(": ");
    if (!nodes.has(id)) nodes.set(id, { id, title, note, aside: name === "[*]" });
    return id;
  };
  const [kind, ...lines] = block.textContent.trim().split("\n");
  for (const line of lines) {
    const [from, to] = line.trim().split(" --> ");
    edges.push({ from: node(from, "start"), to: node(to, "end") });
  }
  const drawing = document.createElement("div");
  drawing.className = "drawing";
  block.replaceWith(drawing);
  drawGraph(drawing, [...nodes.values()], edges, { upright: kind.endsWith("TD") || drawing.clientWidth < 600, label: "Diagram" });
}
