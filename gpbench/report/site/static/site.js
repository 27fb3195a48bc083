// Search, sorting and filtering of tables, runs of a cell, and rank diagrams of selected methods.  Every page but that of
// all results also works without scripts.  Text of records is set as text, never as HTML.
"use strict";
document.documentElement.classList.add("js");

const collator = new Intl.Collator("en", { numeric: true });

function key(row, column) {
  const cell = row.cells[column], text = (cell.dataset.sort ?? cell.textContent).trim();
  return cell.classList.contains("number") && Number.isFinite(parseFloat(text)) ? String(parseFloat(text.replace(/,/g, ""))) : text;
}

// Numbers by size, otherwise texts in natural order; empty cells come last in both directions.
function sort(table, column, sign) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [key(row, column), row]);
  const numeric = rows.every(([value]) => value === "" || Number.isFinite(Number(value)));
  const compare = numeric ? (a, b) => a - b : collator.compare;
  rows.sort(([a], [b]) => (a === "") - (b === "") || sign * compare(a, b));
  body.append(...rows.map(([, row]) => row));
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort(table, column, up ? 1 : -1);
    });
  });
}

// Shows the rows that contain every word.
function makeFilterable(table) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 8) return;
  const texts = rows.map((row) => row.textContent.toLowerCase().replace(/\s+/g, " "));
  const label = document.createElement("label");
  label.className = "filter";
  const input = document.createElement("input");
  input.type = "search";
  const output = document.createElement("output");
  label.append("Filter", input, output);
  table.closest(".box").before(label);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, k) => {
      row.hidden = !words.every((word) => texts[k].includes(word));
      count += !row.hidden;
    });
    output.value = words.length ? `${count} of ${rows.length} rows` : "";
  });
}

const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

const root = document.body.dataset.root || "";

// A table of rows of cells; a cell is text, or an element, or null.
function makeTable(heads, rows, caption) {
  const head = make("tr", {}, ...heads.map(([name, kind]) => make("th", { scope: "col", className: kind || "" }, name)));
  const cells = (row) => row.map((value, k) => {
    const cell = make("td", { className: heads[k][1] || "" }, value ?? "");
    if (heads[k][1]) cell.dataset.label = heads[k][0];
    return cell;
  });
  const body = make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row))));
  return make("table", { className: "sortable stack" }, make("caption", {}, caption), make("thead", {}, head), body);
}

const box = (table, label) => make("div", { className: "box", tabIndex: 0, role: "region", ariaLabel: label }, table);

function chooser(name, values, all) {
  const select = make("select", {}, make("option", { value: "" }, all), ...values.map((value) => make("option", { value }, value)));
  return [select, make("label", {}, `${name} `, select)];
}

// The boards of the front page, by task, size, metric and protocol; without a metric or protocol those of the main ones.
function makeBoards(parent) {
  const boards = [...parent.querySelectorAll(".board")];
  const keys = ["task", "size", "metric", "protocol"];
  const choices = keys.map((key, k) => chooser(key, [...new Set(boards.map((board) => board.dataset[key]))], k < 2 ? "any" : "main"));
  const update = () => {
    const shown = boards.filter((board) => keys.every((key, k) => choices[k][0].value
      ? choices[k][0].value === board.dataset[key] : !board.dataset.second.split(" ").includes(key)));
    boards.forEach((board) => { board.hidden = !shown.includes(board); });
    if (shown.length && !shown.some((board) => board.open)) shown[0].open = true;
    note.textContent = shown.length ? "" : "Nothing is recorded of these.";
  };
  const note = make("output");
  const line = make("div", { className: "choices" }, ...choices.map(([, label]) => label), note);
  line.addEventListener("change", update);
  parent.before(line);
  update();
}

// All results: rows of JSON with filters, some at a time.
function makeResults(place) {
  const { cells: recorded, pages, tasks } = JSON.parse(document.getElementById("entries").textContent);
  const rows = recorded.flatMap(([dataset, output, method, setting, page, badges, metrics]) =>
    metrics.map(([metric, ...values]) => [dataset, output, method, setting, metric, ...values, badges, page]));
  const step = Math.round(Number(place.dataset.page) / (innerWidth < 640 ? 2.4 : 1));
  const distinct = (values) => [...new Set(values)].sort(collator.compare);
  const [task, taskLabel] = chooser("task", distinct(rows.map((row) => tasks[row[0]] || "")).filter(Boolean), "any");
  const [metric, metricLabel] = chooser("metric", distinct(rows.map((row) => row[4])), "any");
  const input = make("input", { type: "search", placeholder: "words" });
  const output = make("output"), more = make("button", { type: "button" }, "Show more");
  const holder = make("div");
  const texts = rows.map((row) => row.filter((_, k) => k !== 12).join(" ").toLowerCase());
  const heads = [["data set"], ["method"], ["setting", "setting"], ["metric"], ["ours ± se", "number"], ["splits", "number"],
                 ["paper", "number"], ["difference, se", "number"], ["remarks"]];
  const keys = [0, 2, 3, 4, 6, 8, 9, 10, 11];
  let limit = step, order = null;
  const link = (text, href) => make("a", { href: root + href }, text);
  const cells = (row) => [make("span", {}, link(row[0], pages.dataset[row[0]]), row[1] ? ` ${row[1]}` : ""),
    link(row[2], pages.method[row[2]]), row[3], row[4], make("span", {}, row[12] ? link(row[5], row[12]) : row[5], row[7] ? ` ${row[7]}` : ""),
    String(row[8]), row[9], row[10], row[11] ? make("span", { className: "badge quick" }, row[11]) : ""];
  const update = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = rows.map((row, k) => [row, texts[k]]).filter(([row, text]) => (!task.value || tasks[row[0]] === task.value)
      && (!metric.value || row[4] === metric.value) && words.every((word) => text.includes(word))).map(([row]) => row);
    if (order) {
      const key = keys[order.column], empty = (value) => value === null || value === "";
      const compare = (a, b) => Number.isFinite(Number(a)) && Number.isFinite(Number(b)) ? a - b : collator.compare(a, b);
      shown = [...shown].sort((a, b) => empty(a[key]) - empty(b[key]) || order.sign * compare(a[key], b[key]));
    }
    const table = makeTable(heads, shown.slice(0, limit).map(cells), "All recorded cells");
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      if (order && order.column === column) head.setAttribute("aria-sort", order.sign > 0 ? "ascending" : "descending");
      button.addEventListener("click", () => {
        order = { column, sign: order && order.column === column ? -order.sign : 1 };
        update();
      });
    });
    holder.replaceChildren(box(table, "All results"));
    output.value = `${Math.min(limit, shown.length)} of ${shown.length} rows`;
    more.hidden = shown.length <= limit;
  };
  const restart = () => { limit = step; update(); };
  [task, metric].forEach((select) => select.addEventListener("change", restart));
  input.addEventListener("input", restart);
  more.addEventListener("click", () => { limit += 5 * step; update(); });
  place.append(make("div", { className: "choices filter" }, make("label", {}, "filter ", input), taskLabel, metricLabel, output), holder, more);
  update();
}

// The runs of a cell, from the JSON of its records.
function makeRuns(place) {
  const [shared, columns] = ["shared", "columns"].map((id) => JSON.parse(document.getElementById(id).textContent));
  const fieldsOf = (lists, k) => Object.fromEntries(Object.entries(lists).map(([name, list]) =>
    [name, Array.isArray(list) ? list[k] : fieldsOf(list, k)]));
  const runs = columns.id.map((_, k) => ({ ...shared, ...fieldsOf(columns, k) }));
  // a record has a place of its own, to which the table leads
  document.getElementById("records").append(...runs.map((run, k) =>
    make("pre", { className: "json run", id: run.id }, JSON.stringify(fieldsOf(columns, k)))));
  const metrics = [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))];
  const short = (value, digits = 4) => value === null || value === undefined ? "" : String(Number(value.toPrecision(digits)));
  const heads = [["split", "number"], ["seed", "number"], ["status"], ...metrics.map((name) => [name, "number"]), ["objective", "number"],
                 ["train s", "number"], ["steps", "number"], ["preset"], ["commit"], ["created"], ["record"]];
  const status = (run) => run.status === "diverged"
    ? make("span", {}, make("span", { className: "badge diverged" }, "diverged"), ` ${run.message || ""}`) : run.status;
  const value = (run, name) => name in (run.undefined || {}) ? `undefined (${run.undefined[name]})` : short(run.metrics[name]);
  const commit = (run) => make("span", {}, make("code", {}, (run.commit || (run.imported ? "imported" : "unknown")).slice(0, 12)),
    ...(run.dirty ? [" ", make("span", { className: "badge dirty" }, "uncommitted changes")] : []));
  const cells = (run) => [String(run.split), String(run.seed), status(run), ...metrics.map((name) => value(run, name)),
    short(run.objective, 6), short((run.seconds || {}).train, 3), short(run.steps), run.preset || "none", commit(run),
    (run.created || "").slice(0, 16).replace("T", " "), make("a", { href: `#${run.id}` }, run.id.slice(0, 8))];
  const table = makeTable(heads, runs.map(cells), "Runs");
  const few = make("details", { open: runs.length <= 25 }, make("summary", {}, `${runs.length} run${runs.length > 1 ? "s" : ""}`), box(table, "Runs"));
  place.append(few);
  makeSortable(table);
}

// The search over names and claims; its index is read with the first letter.
function makeSearch(form) {
  const input = make("input", { type: "search", ariaLabel: "Search methods, data sets, papers and claims", placeholder: "Search" });
  const list = make("ul", { hidden: true });
  form.append(input, list);
  let index = null;
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const score = ([, name]) => words.includes(name.toLowerCase()) ? 0 : name.toLowerCase().startsWith(words[0]) ? 1 : 2;
    const hits = words.length ? index.filter((item) => words.every((word) => item.join(" ").toLowerCase().includes(word))) : [];
    hits.sort((a, b) => score(a) - score(b));
    list.replaceChildren(...hits.slice(0, 12).map(([kind, name, text, page]) => make("li", {},
      make("a", { href: root + page }, name), " ", make("span", { className: "small" }, `${kind}${text ? `: ${text}` : ""}`))));
    if (words.length && !hits.length) list.append(make("li", { className: "none" }, "Nothing has these words."));
    list.hidden = !words.length;
  };
  input.addEventListener("input", () => {
    if (index) return show();
    const script = make("script", { src: `${root}search.js` });
    script.addEventListener("load", () => { index = SEARCH; show(); });
    document.head.append(script);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = list.querySelector("a");
    if (first) location.href = first.href;
  });
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") list.hidden = true; });
  document.addEventListener("click", (event) => { if (!form.contains(event.target)) list.hidden = true; });
}

// Ranks of one row, 1 for the best; ties share their average rank.
function ranksOf(values, higher) {
  const rounded = values.map((value) => Number(value.toPrecision(12)) * (higher ? -1 : 1));
  return rounded.map((a) => rounded.filter((b) => b < a).length + (rounded.filter((b) => b === a).length + 1) / 2);
}

// The upper tail of chi-square, by the series of the lower incomplete gamma function (Abramowitz and Stegun 6.5.29).
function chiSquareTail(x, freedom) {
  if (x <= 0) return 1;
  const a = freedom / 2;
  let gamma = freedom % 2 ? Math.sqrt(Math.PI) : 1;  // of 1/2 or 1, raised to that of a + 1
  for (let z = freedom % 2 ? 0.5 : 1; z <= a; z++) gamma *= z;
  let term = Math.pow(x / 2, a) * Math.exp(-x / 2) / gamma, sum = term;
  for (let n = 1; n < 1000 && term > 1e-17 * sum; n++) sum += term *= x / 2 / (a + n);
  return Math.max(0, 1 - sum);
}

// As gpbench/report/ranks.py: average ranks over the data sets that all of these methods have, best first.
function ranking(data, methods) {
  const datasets = [], leftOut = [], table = [], outputs = {};
  let single = 0;
  for (const [name, row] of Object.entries(data.datasets)) {
    const of = methods.map((method) => row[method]);
    const splits = of.length && of.every(Boolean) ? Object.keys(of[0]).filter((split) => of.every((one) => split in one)) : [];
    if (!splits.length) { leftOut.push(name); continue; }
    datasets.push(name);
    outputs[name.split(" ")[0]] = (outputs[name.split(" ")[0]] || 0) + 1;
    single += splits.length === 1;
    table.push(ranksOf(of.map((one) => splits.reduce((sum, s) => sum + one[s], 0) / splits.length), data.higher));
  }
  const N = datasets.length, k = methods.length;
  if (k < 2 || Object.keys(outputs).length < 2) return { datasets, leftOut, outputs, methods: [], groups: [] };
  const average = methods.map((_, j) => table.reduce((sum, row) => sum + row[j], 0) / N);
  const order = methods.map((_, j) => j).sort((i, j) => average[i] - average[j]);
  const critical = data.quantiles[k - 2] * Math.sqrt(k * (k + 1) / (6 * N));
  const spread = table.flat().reduce((sum, r) => sum + r * r, 0) - N * k * (k + 1) ** 2 / 4;
  const between = average.reduce((sum, r) => sum + (N * r - N * (k + 1) / 2) ** 2, 0);
  const statistic = spread > 0 ? (k - 1) * between / spread : 0;
  const result = { datasets, leftOut, outputs, single, critical, statistic, p: chiSquareTail(statistic, k - 1), groups: [],
                   methods: order.map((j) => methods[j]), average: order.map((j) => average[j]) };
  for (let first = 0; first < k; first++) {
    let last = first;
    while (last + 1 < k && result.average[last + 1] - result.average[first] <= critical - 1e-12) last++;
    const before = result.groups[result.groups.length - 1];
    if (last > first && (!before || last > before[1])) result.groups.push([first, last]);
  }
  return result;
}

function draw(ranks) {
  const k = ranks.methods.length, half = Math.ceil(k / 2), step = 24;
  const longest = Math.max(...ranks.methods.map((name) => name.length));
  const side = 75 + 7.6 * longest, span = Math.max(260, 44 * (k - 1)), axis = 58;
  const at = (rank) => side + span * (rank - 1) / (k - 1);
  const below = axis + 12 * ranks.groups.length + 14;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const add = (tag, attributes, text) => {
    const element = document.createElementNS(svg.namespaceURI, tag);
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
    if (text !== undefined) element.textContent = text;
    svg.append(element);
  };
  const line = (x1, y1, x2, y2, width = 1) => add("line", { x1, y1, x2, y2, "stroke-width": width });
  const width = 2 * side + span, height = below + step * half + 8;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", ranks.methods.map((name, j) => `${name} ${ranks.average[j].toFixed(2)}`).join(", "));
  const end = at(1 + ranks.critical);
  line(at(1), 14, end, 14, 1.5);
  line(at(1), 9, at(1), 19, 1.5);
  line(end, 9, end, 19, 1.5);
  add("text", { x: end + 8, y: 18 }, `critical difference ${ranks.critical.toFixed(2)}`);
  line(at(1), axis, at(k), axis);
  for (let rank = 1; rank <= k; rank++) {
    line(at(rank), axis - 6, at(rank), axis);
    add("text", { x: at(rank), y: axis - 11, "text-anchor": "middle" }, rank);
  }
  ranks.groups.forEach(([first, last], row) => {
    const y = axis + 11 + 12 * row;
    line(at(ranks.average[first]) - 5, y, at(ranks.average[last]) + 5, y, 4);
  });
  ranks.methods.forEach((name, j) => {
    const left = j < half, y = below + step * (left ? j : k - 1 - j) + 10, x = at(ranks.average[j]);
    const edge = left ? at(1) - 14 : at(k) + 14;
    add("polyline", { points: `${x},${axis} ${x},${y} ${edge},${y}`, class: "soft" });
    const value = ranks.average[j].toFixed(2);
    add("text", { x: left ? edge - 6 : edge + 6, y: y + 4, "text-anchor": left ? "end" : "start" },
        left ? `${name}  ${value}` : `${value}  ${name}`);
  });
  return svg;
}

// The same for narrow screens.
function rankList(ranks) {
  return make("ol", { className: "dots narrow-only" }, ...ranks.methods.map((name, j) => {
    const dot = make("b");
    dot.style.left = `${1 + 98 * (ranks.average[j] - 1) / Math.max(1, ranks.methods.length - 1)}%`;
    return make("li", {}, make("span", { className: "name" }, name), make("span", { className: "track" }, dot),
                make("span", { className: "value" }, ranks.average[j].toFixed(2)));
  }));
}

function notesOf(ranks, data) {
  const lines = ranks.methods.length
    ? [`average rank over ${ranks.datasets.length} data sets (1 is best): ${ranks.datasets.join(", ")}`,
       `Friedman chi-square ${ranks.statistic.toFixed(2)}, p = ${ranks.p.toPrecision(2)}; critical difference ` +
         ranks.critical.toFixed(2),
       "groups: no significant difference within a group (Nemenyi's test, 5 %)"]
    : [`Ranks need at least two methods, and two data sets that all of them have; there ${
         Object.keys(ranks.outputs).length === 1 ? `is ${Object.keys(ranks.outputs)[0]}` : "is none"}.`];
  if (ranks.methods.length) {
    const several = Object.entries(ranks.outputs).filter(([, n]) => n > 1).map(([name, n]) => `${name} (${n})`);
    if (several.length) lines.push(`outputs and split sets of one data set are not independent, which makes p too small: ${several.join(", ")}`);
    if (ranks.single) lines.push(`ranked on a single split: ${ranks.single} of ${ranks.datasets.length}`);
  }
  const isRanked = ([dataset, name]) => ranks.datasets.includes(dataset) && ranks.methods.includes(name);
  const counts = data.diverged.filter(isRanked);
  if (counts.length) {
    lines.push(`diverged runs do not count: ${counts.map(([dataset, name, n]) => `${name} on ${dataset} (${n})`).join("; ")}`);
  }
  const absent = new Set(data.undefined.filter(isRanked).map(([dataset, , words]) => `${dataset}: ${words}`));
  if (absent.size) lines.push(`splits without ${data.metric} do not count: ${[...absent].join("; ")}`);
  if (ranks.leftOut.length) lines.push(`left out (a method is missing): ${ranks.leftOut.join(", ")}`);
  return lines;
}

// The values of a section by data set, method and split.
function ranksData(section) {
  const data = JSON.parse(section.querySelector("script").textContent);
  const bySplit = (splits, values) => Object.fromEntries(splits.map((split, k) => [split, values[k]]).filter(([, v]) => v !== null));
  const row = ([splits, columns]) =>
    Object.fromEntries(Object.entries(columns).map(([j, values]) => [data.methods[j], bySplit(splits, values)]));
  return { ...data, datasets: Object.fromEntries(Object.entries(data.datasets).map(([name, columns]) => [name, row(columns)])) };
}

function makeChooser(section) {
  const data = ranksData(section);
  const diagram = section.querySelector(".diagram");
  const chooser = make("fieldset", { className: "choose" });
  const boxes = data.methods.map((method, j) => {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = data.default[j];
    label.append(box, ` ${method}${data.quick.includes(method) ? " (quick)" : ""}`);
    chooser.append(label, " ");
    return box;
  });
  const update = () => {
    const ranks = ranking(data, data.methods.filter((_, j) => boxes[j].checked));
    const notes = document.createElement("ul");
    notes.className = "small plain";
    notes.append(...notesOf(ranks, data).map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    diagram.replaceChildren();
    if (ranks.methods.length) {
      const figure = document.createElement("figure");
      figure.className = "picture drawn";
      figure.tabIndex = 0;
      figure.setAttribute("role", "group");
      figure.setAttribute("aria-label", "Average ranks");
      figure.append(draw(ranks), rankList(ranks));
      diagram.append(figure);
    }
    diagram.append(notes);
  };
  chooser.addEventListener("change", update);
  diagram.before(make("details", { open: true }, make("summary", {}, "Methods"), chooser));
  update();
}

// Ranks: one section at a time, by task, metric and runs.
function makeRanks(sections) {
  const keys = ["task", "metric", "runs"], drawn = new Set();
  const selects = keys.map(() => make("select"));
  const update = () => {
    let left = sections;
    keys.forEach((key, k) => {
      const values = [...new Set(left.map((section) => section.dataset[key]))];
      const value = values.includes(selects[k].value) ? selects[k].value : values[0];
      selects[k].replaceChildren(...values.map((each) => make("option", { value: each, selected: each === value }, each)));
      left = left.filter((section) => section.dataset[key] === value);
    });
    const [shown] = left;
    sections.forEach((section) => { section.hidden = section !== shown; });
    shown.open = true;
    if (!drawn.has(shown)) makeChooser(shown);
    drawn.add(shown);
  };
  const line = make("div", { className: "choices" }, ...keys.map((key, k) => make("label", {}, `${key} `, selects[k])));
  line.addEventListener("change", update);
  sections[0].before(line);
  update();
}

// Closes open parts until the page has at most 3,000 pixels: notes first, then from the last one upwards.
function fold() {
  const parts = [...document.querySelectorAll("main details[open]")].reverse();
  const isNote = (part) => part.classList.contains("about");
  for (const part of [...parts.filter(isNote), ...parts.filter((part) => !isNote(part))]) {
    if (document.documentElement.scrollHeight <= 3000) break;
    part.open = false;
  }
}

// A link to something closed opens it.
function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") { e.open = true; e.hidden = false; }
  if (target) target.scrollIntoView();
}

document.querySelectorAll("#table-of-runs").forEach(makeRuns);
document.querySelectorAll("#all").forEach(makeResults);
document.querySelectorAll("table.sortable").forEach((table) => { if (!table.querySelector("th button")) makeSortable(table); });
document.querySelectorAll("table.filterable").forEach(makeFilterable);
document.querySelectorAll(".boards").forEach(makeBoards);
document.querySelectorAll("form.search").forEach(makeSearch);
const ranked = [...document.querySelectorAll("details.ranks")];
if (ranked.length) makeRanks(ranked);
if (innerWidth < 640) document.querySelectorAll("details.about").forEach((part) => { part.open = false; });
fold();
addEventListener("hashchange", openTarget);
openTarget();
