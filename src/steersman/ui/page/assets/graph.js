"use strict";
// Draws a graph in layers: nodes as boxes, edges as curves that run between the layers.
// nodes: [{id, title, note, tone, here, aside, choose}], edges: [{from, to, tone, title}].
const drawGraph = (() => {
  const SVG = "http://www.w3.org/2000/svg", GAP = 54, SPREAD = 18, HEIGHT = 44;

  const element = (name, attributes, parent, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };
  const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
  const width = (node) => Math.max(84, 24 + Math.max(short(node.title, 26).length * 7.4, short(node.note || "", 30).length * 6));

  // The layer of each node is the length of the longest way to it. An edge that closes a cycle points back.
  const layersOf = (nodes, edges) => {
    const after = new Map(nodes.map((node) => [node.id, []])), back = new Set(), state = new Map();
    for (const edge of edges) after.get(edge.from).push(edge);
    const order = [];
    const visit = (id) => {
      state.set(id, 1);
      for (const edge of after.get(id)) {
        if (state.get(edge.to) === 1) back.add(edge);
        else if (!state.has(edge.to)) visit(edge.to);
      }
      state.set(id, 2);
      order.unshift(id);
    };
    for (const node of nodes) if (!state.has(node.id)) visit(node.id);
    const layer = new Map(nodes.map((node) => [node.id, 0]));
    for (const id of order) for (const edge of after.get(id)) if (!back.has(edge)) layer.set(edge.to, Math.max(layer.get(edge.to), layer.get(id) + 1));
    return [layer, back];
  };

  // Boxes and bends by layer. An edge over several layers bends in each of them, so that it crosses no box.
  const arrange = (nodes, edges) => {
    const [layer, back] = layersOf(nodes, edges), layers = [];
    const put = (place, item) => { (layers[place] ||= []).push(item); return item; };
    const boxes = new Map(nodes.map((node) => [node.id, put(layer.get(node.id), { node, size: width(node), near: [] })]));
    const ways = edges.map((edge) => {
      const turned = back.has(edge), from = boxes.get(turned ? edge.to : edge.from), to = boxes.get(turned ? edge.from : edge.to), way = [from];
      for (let place = layer.get(from.node.id) + 1; place < layer.get(to.node.id); place++) way.push(put(place, { size: 10, near: [] }));
      way.push(to);
      way.forEach((item, index) => { if (index) { item.near.push(way[index - 1]); way[index - 1].near.push(item); } });
      return { edge, way, turned };
    });
    for (const items of layers) items.forEach((item, index) => { item.place = index; });
    for (let round = 0; round < 6; round++) {
      for (const items of layers) {
        for (const item of items) item.wish = item.near.length ? item.near.reduce((sum, each) => sum + each.place, 0) / item.near.length : item.place;
        items.sort((one, other) => one.wish - other.wish);
        items.forEach((item, index) => { item.place = index; });
      }
    }
    return [layers, boxes, ways];
  };

  return (where, nodes, edges, { upright = false, label = "" } = {}) => {
    const [layers, boxes, ways] = arrange(nodes, edges);
    // Across: the position in the layer. Along: the position of the layer.
    const thick = (item) => (upright ? item.size : item.node ? HEIGHT : 8), spans = layers.map((items) => items.reduce((sum, item) => sum + thick(item) + SPREAD, -SPREAD));
    const across = Math.max(...spans, 60);
    let along = 4;
    layers.forEach((items, index) => {
      const depth = upright ? HEIGHT : Math.max(...items.map((item) => (item.node ? item.size : 0)), 20);
      let at = 4 + (across - spans[index]) / 2;
      for (const item of items) {
        item.at = at + thick(item) / 2;
        item.begin = along + (upright || !item.node ? 0 : (depth - item.size) / 2);
        item.end = item.node ? item.begin + (upright ? HEIGHT : item.size) : along + depth;
        at += thick(item) + SPREAD;
      }
      along += depth + (upright ? 34 : GAP);
    });
    const point = (along, across) => (upright ? [across, along] : [along, across]);
    const [w, h] = point(along - (upright ? 30 : GAP - 4), across + 8);
    const svg = element("svg", { viewBox: `0 0 ${w} ${h}`, width: w, height: h, role: "group", "aria-label": label });
    for (const { edge, way, turned } of ways) {
      const points = way.flatMap((item, index) => (index === 0 ? [point(item.end, item.at)] : index === way.length - 1 ? [point(item.begin, item.at)] : [point(item.begin, item.at), point(item.end, item.at)]));
      if (turned) points.reverse();
      let path = `M${points[0]}`;
      for (let index = 1; index < points.length; index++) {
        const [x, y] = points[index - 1], [u, v] = points[index];
        path += upright ? `C${x},${(y + v) / 2} ${u},${(y + v) / 2} ${u},${v}` : `C${(x + u) / 2},${y} ${(x + u) / 2},${v} ${u},${v}`;
      }
      const drawn = element("path", { class: `edge ${edge.tone || ""}`, d: path }, svg);
      if (edge.title) element("title", {}, drawn, edge.title);
      const [u, v] = points[points.length - 1], way_ = turned ? -1 : 1;
      const head = upright ? `${u},${v} ${u - 4},${v - 8 * way_} ${u + 4},${v - 8 * way_}` : `${u},${v} ${u - 8 * way_},${v - 4} ${u - 8 * way_},${v + 4}`;
      element("polygon", { class: `head ${edge.tone || ""}`, points: head }, svg);
    }
    for (const item of boxes.values()) {
      const { node, size } = item, [x, y] = upright ? [item.at - size / 2, item.begin] : [item.begin, item.at - HEIGHT / 2];
      const group = element("g", node.choose ? { tabindex: 0, role: "button", "aria-label": `${node.title}: ${node.note}` } : {}, svg);
      element("title", {}, group, node.hint || `${node.title}${node.note ? ": " + node.note : ""}`);
      element("rect", { class: `box ${node.tone || ""}${node.here ? " here" : ""}${node.aside ? " aside" : ""}`, x, y, width: size, height: HEIGHT, rx: 8 }, group);
      element("text", { class: "strong", x: x + size / 2, y: y + (node.note ? 19 : 27), "text-anchor": "middle" }, group, short(node.title, 26));
      if (node.note) element("text", { class: "small", x: x + size / 2, y: y + 35, "text-anchor": "middle" }, group, short(node.note, 30));
      if (node.choose) {
        group.addEventListener("click", node.choose);
        group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); node.choose(); } });
      }
    }
    // A drawing that is a little too wide shrinks; a wider one would be unreadable, and scrolls.
    const room = where.clientWidth - 28;
    if (w > room && w < room * 1.5) svg.setAttribute("class", "fitted");
    where.append(svg);
  };
})();
