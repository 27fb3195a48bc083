// Sorting and filtering of tables, and rank diagrams of selected methods.  Every page also works without scripts.
"use strict";
document.documentElement.classList.add("js");

const collator = new Intl.Collator("en", { numeric: true });

function key(row, column) {
  const cell = row.cells[column];
  return (cell.dataset.sort ?? cell.textContent).trim();
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

const short = (name) => name.length > 40 ? `${name.slice(0, 38).trimEnd()} …` : name;

function draw(ranks) {
  const k = ranks.methods.length, half = Math.ceil(k / 2), step = 24;
  const longest = Math.max(...ranks.methods.map((name) => short(name).length));
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
        left ? `${short(name)}  ${value}` : `${value}  ${short(name)}`);
  });
  return svg;
}

function notesOf(ranks, diverged) {
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
  const counts = diverged.filter(([dataset, name]) => ranks.datasets.includes(dataset) && ranks.methods.includes(name));
  if (counts.length) {
    lines.push(`diverged runs do not count: ${counts.map(([dataset, name, n]) => `${name} on ${dataset} (${n})`).join("; ")}`);
  }
  if (ranks.leftOut.length) lines.push(`left out (a method is missing): ${ranks.leftOut.join(", ")}`);
  return lines;
}

function makeChooser(section) {
  const data = JSON.parse(section.querySelector("script").textContent);
  const diagram = section.querySelector(".diagram");
  const chooser = document.createElement("fieldset");
  chooser.className = "choose";
  const legend = document.createElement("legend");
  legend.textContent = "Methods";
  chooser.append(legend);
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
    notes.append(...notesOf(ranks, data.diverged).map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    diagram.replaceChildren();
    if (ranks.methods.length) {
      const figure = document.createElement("figure");
      figure.className = "picture drawn";
      figure.tabIndex = 0;
      figure.setAttribute("role", "group");
      figure.setAttribute("aria-label", "Average ranks");
      figure.append(draw(ranks));
      diagram.append(figure);
    }
    diagram.append(notes);
  };
  chooser.addEventListener("change", update);
  diagram.before(chooser);
  update();
}

// A link to a record opens it.
function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") target.open = true;
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll("table.filterable").forEach(makeFilterable);
document.querySelectorAll("section.ranks").forEach(makeChooser);
addEventListener("hashchange", openTarget);
openTarget();
