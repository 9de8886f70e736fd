"use strict";
(() => {
  const KEPT = 5000, SHOWN = 2000, SILENCE = 25000;
  const get = (id) => document.getElementById(id);
  const make = (name, attributes = {}, ...inside) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key in made && key !== "list") made[key] = value; else made.setAttribute(key, value);
    }
    made.append(...inside);
    return made;
  };
  const tones = {
    running: "good", unhealthy: "bad", finished: "quiet", stopped: "quiet", waiting: "warn", failed: "bad", unknown: "bad", "not found": "bad", paused: "warn",
    starting: "busy", building: "busy", stopping: "busy", restarting: "warn",
  };
  // The state as one word, in which a service that runs and fails its check is unhealthy.
  const conditionOf = (row) => (row.summary === "running" && row.health === "unhealthy" ? "unhealthy" : row.summary);
  const toneOf = (row) => tones[conditionOf(row)] || "quiet";
  let rows = [], machines = {}, lines = [], pending = [], project = "", connected = false, open = false, paused = false, cleared = 0, view = "logs", chosen = "";
  let abort = null, heard = 0, lostSince = 0, retry = 500, scheduled = false, redraw = true, sent = new Map();

  // colors: by the place in the file, so that a service keeps its color
  const colorOf = (name) => { const place = rows.findIndex((row) => row.name === name); return `var(--s${(place < 0 ? 0 : place) % 8})`; };
  const tint = (where, name) => { where.style.color = colorOf(name); return where; };

  // the feed
  const connect = async () => {
    const own = abort = new AbortController();
    try {
      const answer = await fetch("feed", { method: "POST", signal: own.signal, cache: "no-store" });
      if (!answer.ok) {
        const words = (await answer.text()).trim();
        if (answer.status === 401 || answer.status === 404) return end(words);
        throw new Error(words);
      }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) throw new Error("the server has closed the connection");
        heard = Date.now();
        const parts = (rest + value).split("\n");
        rest = parts.pop();
        for (const part of parts) if (part) take(JSON.parse(part));
      }
    } catch (error) {
      if (own !== abort) return;
      lose();
      setTimeout(() => { if (own === abort && !document.hidden) connect(); }, retry);
      retry = Math.min(retry * 2, 5000);
    }
  };
  const take = (message) => {
    if (message.type === "hello") {
      project = message.project; machines = message.machines; lines = []; pending = []; open = true; retry = 500; lostSince = 0; redraw = true;
      document.title = `${project} · Steersman`; get("project").textContent = project;
    } else if (message.type === "state") {
      rows = message.rows; connected = message.connected; drawRows();
    } else if (message.type === "lines") {
      for (const [service, replica, err, time, text, dropped] of message.lines) if (!time || time > cleared) pending.push({ service, replica, err, time, text, dropped });
      if (pending.length > KEPT) pending.splice(0, pending.length - KEPT);
      schedule();
    }
    drawLink();
  };
  const lose = () => { open = false; lostSince ||= Date.now(); drawLink(); };
  const end = (words) => { abort = null; open = false; get("lost").textContent = words; get("lost").hidden = false; drawLink(); };
  setInterval(() => {
    if (open && Date.now() - heard > SILENCE && abort) { const old = abort; abort = null; old.abort(); lose(); connect(); }
    drawLink(); drawAges();
  }, 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) setTimeout(() => { if (document.hidden && abort) { const old = abort; abort = new AbortController(); old.abort(); open = false; } }, 20000);
    else if (!open && abort) { retry = 500; connect(); }
  });
  const drawLink = () => {
    const link = get("link"), lost = get("lost"), fine = open && connected;
    link.className = `link ${fine ? "on" : "off"}`;
    get("link-words").textContent = fine ? "connected" : "not connected";
    if (fine) lost.hidden = true;
    else if (open) { lost.textContent = "The control plane does not answer. What you see may be old."; lost.hidden = false; }
    else if (abort && lostSince) {
      lost.textContent = `No connection for ${Math.round((Date.now() - lostSince) / 1000)} s: is steersman up still running? Trying again. What you see may be old.`;
      lost.hidden = false;
    }
  };

  // services
  const age = (seconds) => (seconds < 60 ? `${Math.max(0, Math.floor(seconds))} s` : seconds < 3600 ? `${Math.floor(seconds / 60)} min` : seconds < 86400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`);
  const drawAges = () => { for (const cell of document.querySelectorAll("[data-since]")) cell.textContent = cell.dataset.since ? age(Date.now() / 1000 - Number(cell.dataset.since)) : ""; };
  const details = (row) => {
    const parts = [];
    if (row.waiting_for) parts.push(`waits for ${row.waiting_for}`);
    if (row.message) parts.push(row.message);
    else if (row.exit_code !== null && row.exit_code !== undefined && row.summary !== "finished" && row.summary !== "stopped") parts.push(`Ended with exit code ${row.exit_code}.`);
    return parts.join("; ");
  };
  const actionsOf = (row) => (["stopped", "finished", "failed"].includes(row.summary) ? ["start"] : row.summary === "stopping" ? ["restart"] : ["restart", "stop"]);
  const drawRows = () => {
    const body = get("rows"), focus = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.focus : "";
    const made = rows.map((row) => {
      const name = make("button", { type: "button", title: `Show the output of ${row.name}` }, row.name);
      name.dataset.focus = `name ${row.name}`;
      name.addEventListener("click", () => choose(chosen === row.name ? "" : row.name));
      const kind = row.replicas === 1 ? row.kind : `${row.kind} · ${row.ready}/${row.replicas} ready`;
      const states = make("div", { className: "states-cell" }, make("span", { className: `badge ${row.summary === "failed" ? "alarm" : conditionOf(row) === "unhealthy" ? "" : toneOf(row)}` }, row.state));
      if (row.health && row.health !== "unknown") states.append(make("span", { className: `badge ${row.health === "healthy" ? "good" : "alarm"}` }, row.health));
      else if (row.health) states.append(make("span", { className: "badge" }, "health unknown"));
      const addresses = make("div", { className: "addresses" });
      for (const address of row.addresses) {
        if (!/^[\w.[\]:-]+:\d+$/.test(address)) continue;
        addresses.append(make("a", { href: `http://${address}/`, target: "_blank", rel: "noreferrer noopener" }, address));
      }
      const since = make("td", { className: "number" });
      since.dataset.since = row.since && row.summary !== "waiting" ? row.since : "";
      const actions = make("td", { className: "actions" });
      for (const action of actionsOf(row)) {
        const waits = sent.get(row.name) === action, button = make("button", { type: "button", disabled: waits, "aria-label": `${action} ${row.name}` }, waits ? "…" : action[0].toUpperCase() + action.slice(1));
        button.dataset.focus = `${action} ${row.name}`;
        button.addEventListener("click", () => act(row, action));
        actions.append(button);
      }
      const found = make("tr", { className: row.name === chosen ? "chosen" : "" },
        make("td", {}, make("div", { className: "name" }, tint(make("span", { className: "tint", "aria-hidden": "true" }), row.name), name, make("small", {}, kind))),
        make("td", { className: "state" }, states), make("td", { className: `addresses-cell${row.addresses.length ? "" : " none"}` }, addresses),
        make("td", { className: `number restarts ${row.restarts ? "" : "zero"}` }, String(row.restarts)), since,
        make("td", { className: "details" }, make("span", { className: toneOf(row) === "bad" ? "bad-text" : "" }, details(row))), actions);
      return found;
    });
    body.replaceChildren(...made);
    drawAges();
    if (focus) for (const each of body.querySelectorAll("[data-focus]")) if (each.dataset.focus === focus) each.focus({ preventScroll: true });
    get("empty").hidden = rows.length > 0;
    const counts = new Map();
    for (const row of rows) counts.set(conditionOf(row), (counts.get(conditionOf(row)) || 0) + 1);
    get("summary").replaceChildren(...[...counts].flatMap(([state, count], place) => [place ? ", " : "", make("span", { className: tones[state] || "" }, `${count} ${state}`)]));
    const select = get("chosen"), names = rows.map((row) => row.name);
    if ([...select.options].slice(1).map((each) => each.value).join("\n") !== names.join("\n")) {
      select.replaceChildren(make("option", { value: "" }, "All services"), ...names.map((each) => make("option", { value: each }, each)));
      if (!names.includes(chosen)) chosen = "";
      select.value = chosen;
      redraw = true; schedule();
    }
    drawDrawings();
  };
  const act = async (row, action) => {
    sent.set(row.name, action);
    drawRows();
    try {
      const answer = await fetch("action", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ action, service: row.name }) });
      const text = await answer.text();
      let words = text;
      try { words = JSON.parse(text).message; } catch { /* a refusal is plain text */ }
      notice(words, !answer.ok);
    } catch { notice(`${action} ${row.name} was not sent: there is no connection`, true); }
    sent.delete(row.name);
    drawRows();
  };
  const notice = (words, bad) => {
    const made = make("div", { className: `notice${bad ? " bad" : ""}` }, words);
    get("notices").append(made);
    setTimeout(() => made.remove(), bad ? 10000 : 3500);
  };
  const choose = (name) => {
    chosen = name; get("chosen").value = name; redraw = true;
    drawRows(); schedule();
  };

  // output
  const wanted = () => {
    const words = get("search").value.toLowerCase();
    return [words, (line) => (!chosen || line.service === chosen) && (!words || line.text.toLowerCase().includes(words))];
  };
  const clock = (time) => { const at = new Date(time * 1000), two = (number) => String(number).padStart(2, "0"); return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`; };
  // eslint-disable-next-line no-control-regex
  const plain = (text) => text.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f]/g, "");
  const marked = (text, words) => {
    const span = make("span"), low = text.toLowerCase();
    let from = 0;
    for (let at = words ? low.indexOf(words) : -1; at >= 0; at = low.indexOf(words, from)) {
      span.append(text.slice(from, at), make("mark", {}, text.slice(at, at + words.length)));
      from = at + words.length;
    }
    span.append(text.slice(from));
    return span;
  };
  const drawn = (line, words, before) => {
    const same = before && before.service === line.service ? " same" : "";
    const found = make("div", { className: `line${line.err ? " err" : ""}${line.dropped ? " gap" : ""}${same}`, title: line.err ? "stderr" : "" },
      make("time", {}, line.time ? clock(line.time) : ""), tint(make("b", { title: line.replica }, line.service), line.service), marked(line.text, words));
    if (line.err) found.firstChild.append(make("i", { className: "hidden" }, " stderr"));
    return found;
  };
  const schedule = () => { if (!scheduled) { scheduled = true; requestAnimationFrame(() => { scheduled = false; drawLines(); }); } };
  const drawLines = () => {
    if (paused && !redraw) { get("pause").textContent = `Resume (${Math.min(pending.length, KEPT)} new)`; return; }
    const box = get("lines"), follows = following, [words, fits] = wanted();
    let fresh = paused ? [] : pending;
    if (!paused) pending = [];
    for (const line of fresh) line.text = plain(line.text);
    lines.push(...fresh);
    if (lines.length > KEPT) lines.splice(0, lines.length - KEPT);
    if (redraw) { box.replaceChildren(); fresh = lines; redraw = false; box.className = `lines${chosen ? " one" : ""}`; }
    const shown = fresh.filter(fits).slice(-SHOWN), last = shown.length ? null : box.querySelector(".line");
    if (shown.length) {
      const empty = box.querySelector(".nothing");
      if (empty) empty.remove();
      let before = null;
      box.append(...shown.map((line) => { const made = drawn(line, words, before); before = line; return made; }));
      while (box.childElementCount > SHOWN) box.firstElementChild.remove();
    } else if (!last && !box.querySelector(".nothing")) {
      box.append(make("div", { className: "nothing" }, words ? "No line matches." : "No output yet."));
    }
    get("found").textContent = words ? `${lines.filter(fits).length} lines` : "";
    if (follows) box.scrollTop = box.scrollHeight;
    get("newest").hidden = follows;
  };
  let following = true;
  const toEnd = () => { const box = get("lines"); box.scrollTop = box.scrollHeight; };
  get("lines").addEventListener("scroll", () => {
    const box = get("lines");
    following = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    get("newest").hidden = following;
  });
  get("newest").addEventListener("click", toEnd);
  // A new size moves the lines, and the user did not scroll.
  new ResizeObserver(() => { if (following) toEnd(); }).observe(get("lines"));
  get("search").addEventListener("input", () => { redraw = true; schedule(); });
  get("chosen").addEventListener("change", (event) => choose(event.target.value));
  const pause = () => {
    paused = !paused;
    get("pause").setAttribute("aria-pressed", String(paused));
    get("pause").textContent = paused ? "Resume" : "Pause";
    schedule();
  };
  get("pause").addEventListener("click", pause);
  get("clear").addEventListener("click", () => {
    cleared = Math.max(cleared, ...[...lines, ...pending].map((line) => line.time || 0));
    lines = []; pending = []; redraw = true; schedule();
  });
  get("copy").addEventListener("click", async () => {
    const [, fits] = wanted(), text = lines.filter(fits).map((line) => `${line.time ? new Date(line.time * 1000).toISOString() : ""} ${line.service} ${line.err ? "stderr " : ""}${line.text}`).join("\n");
    try { await navigator.clipboard.writeText(text + "\n"); notice("Copied."); } catch { notice("The browser does not allow to copy.", true); }
  });

  // drawings
  let lastGraph = "", lastStates = "";
  const narrow = () => innerWidth < 700;
  const drawDrawings = () => {
    if (view === "graph") drawDependencies();
    if (view === "states") drawStates();
  };
  const isMet = (row, condition) => row && (condition === "completed" ? row.summary === "finished" : condition === "healthy" ? row.summary === "running" && row.health !== "unhealthy" && row.health !== "unknown" : ["running", "finished"].includes(row.summary));
  const drawDependencies = () => {
    const key = JSON.stringify([rows.map((row) => [row.name, row.state, row.health, row.depends_on]), narrow(), chosen]);
    if (key === lastGraph) return;
    lastGraph = key;
    const where = get("graph"), known = new Map(rows.map((row) => [row.name, row]));
    const nodes = rows.map((row) => ({ id: row.name, title: row.name, note: row.health === "unhealthy" ? `${row.state}, unhealthy` : row.state, tone: toneOf(row), here: row.name === chosen, choose: () => choose(row.name) }));
    const edges = rows.flatMap((row) => row.depends_on.filter(([name]) => known.has(name)).map(([name, condition]) => ({
      from: name, to: row.name, tone: isMet(known.get(name), condition) ? "met" : "", title: `${row.name} starts when ${name} has ${condition === "healthy" ? "become healthy" : condition}`,
    })));
    where.replaceChildren();
    if (!rows.length) where.append(make("p", {}, "No services yet."));
    else {
      where.append(make("p", {}, edges.length ? "An arrow leads from a service to those that wait for it; it is green once its condition is met." : "No service depends on another one."));
      const tied = new Set(edges.flatMap((edge) => [edge.from, edge.to])), loose = nodes.filter((node) => !tied.has(node.id));
      if (edges.length) drawGraph(where, nodes.filter((node) => tied.has(node.id)), edges, { upright: narrow(), label: "Dependencies" });
      // Services without dependencies stand beside each other, or below each other on a phone.
      if (loose.length) drawGraph(where, loose, [], { upright: !narrow(), label: "Services without dependencies" });
    }
  };
  const drawStates = () => {
    const shown = chosen ? rows.filter((row) => row.name === chosen) : rows.slice(0, 1);
    const key = JSON.stringify([shown.map((row) => [row.name, row.machine, row.states, row.state]), narrow()]);
    if (key === lastStates) return;
    lastStates = key;
    const where = get("states");
    where.replaceChildren();
    for (const row of shown) {
      const table = machines[row.machine] || {}, live = new Map();
      for (const [replica, state] of row.states) live.set(state, [...(live.get(state) || []), replica]);
      where.append(make("h3", {}, `${row.name} `, make("small", {}, `${row.machine}: ${row.states.map(([replica, state]) => `${replica} is ${state || "waiting"}`).join(", ") || "no run yet"}`)));
      const states = Object.keys(table).filter((state) => state !== "Unknown" || live.has("Unknown"));
      const tone = { "": "warn", Pending: "warn", NotFound: "bad", FailedToStart: "bad", Unknown: "bad", RuntimeUnhealthy: "bad", Running: "good", Paused: "warn" };
      const nodes = states.map((state) => {
        const runs = live.get(state) || [];
        return { id: state, title: state || "(waiting)", note: runs.length > 1 ? `${runs.length} runs` : runs.length ? "now" : "", here: runs.length > 0, aside: !table[state].filter((each) => each !== "Unknown").length, tone: runs.length ? tone[state] || "busy" : "", hint: runs.join(", ") || state };
      });
      const edges = states.flatMap((state) => table[state].filter((next) => states.includes(next) && (next !== "Unknown" || live.has("Unknown"))).map((next) => ({ from: state, to: next, tone: live.has(state) ? "next" : "", title: `${state || "(waiting)"} → ${next}` })));
      drawGraph(where, nodes, edges, { upright: narrow(), label: `States of ${row.name}` });
      where.append(make("p", {}, `The colored state is the present one, and blue arrows show what can follow. Every state can also become Unknown.${chosen || rows.length < 2 ? "" : " Choose another service above."}`));
    }
    if (!shown.length) where.append(make("p", {}, "No services yet."));
  };
  addEventListener("resize", () => { drawDrawings(); });

  // tabs
  const tabs = ["logs", "graph", "states"];
  const show = (name, focus) => {
    view = name;
    for (const each of tabs) {
      const tab = get(`tab-${each}`), is = each === name;
      tab.setAttribute("aria-selected", String(is)); tab.tabIndex = is ? 0 : -1; get(`view-${each}`).hidden = !is;
      if (is && focus) tab.focus();
    }
    get("tools").hidden = name !== "logs";
    drawDrawings();
    if (name === "logs") { redraw = true; schedule(); }
  };
  for (const name of tabs) {
    get(`tab-${name}`).addEventListener("click", () => show(name));
    get(`tab-${name}`).addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) { event.preventDefault(); show(tabs[(tabs.indexOf(name) + step + tabs.length) % tabs.length], true); }
    });
  }
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape" && event.target === get("search")) { get("search").value = ""; get("search").blur(); redraw = true; schedule(); }
    if (typing) return;
    if (event.key === "/") { event.preventDefault(); show("logs"); get("search").focus(); }
    if (event.key === "p" && view === "logs") pause();
  });
  connect();
})();
