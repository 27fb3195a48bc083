// Sorting and filtering of tables, and rank diagrams of chosen methods.  Every page works without it, too.
"use strict";
document.documentElement.classList.add("js");

const collator = new Intl.Collator("en", { numeric: true });

function key(row, column) {
  const cell = row.cells[column];
  return (cell.dataset.sort ?? cell.textContent).trim();
}

// Numbers by size, else texts in natural order; what is empty is last either way.
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

// Keeps the rows that have every word.
function makeFilterable(table) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 8) return;
  const texts = rows.map((row) => row.textContent.toLowerCase().replace(/\s+/g, " "));
  const label = document.createElement("label");
  label.className = "filter";
  const input = document.createElement("input");
  input.type = "search";
  const count = document.createElement("output");
  label.append("Filter", input, count);
  table.closest(".box").before(label);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, k) => {
      row.hidden = !words.every((word) => texts[k].includes(word));
      shown += !row.hidden;
    });
    count.value = words.length ? `${shown} of ${rows.length} rows` : "";
  });
}

// Ranks of one row, 1 for the best; ties share their average.
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
  const kept = [], table = [], left = [];
  for (const [name, row] of Object.entries(data.datasets)) {
    const of = methods.map((method) => row[method]);
    const splits = of.length && of.every(Boolean) ? Object.keys(of[0]).filter((split) => of.every((one) => split in one)) : [];
    if (!splits.length) { left.push(name); continue; }
    kept.push(name);
    table.push(ranksOf(of.map((one) => splits.reduce((sum, s) => sum + one[s], 0) / splits.length), data.higher));
  }
  const N = kept.length, k = methods.length;
  if (k < 2 || N < 2) return { kept, left, methods: [], groups: [] };
  const average = methods.map((_, j) => table.reduce((sum, row) => sum + row[j], 0) / N);
  const order = methods.map((_, j) => j).sort((i, j) => average[i] - average[j]);
  const critical = data.quantiles[k - 2] * Math.sqrt(k * (k + 1) / (6 * N));
  const spread = table.flat().reduce((sum, r) => sum + r * r, 0) - N * k * (k + 1) ** 2 / 4;
  const between = average.reduce((sum, r) => sum + (N * r - N * (k + 1) / 2) ** 2, 0);
  const statistic = spread > 0 ? (k - 1) * between / spread : 0;
  const made = { kept, left, critical, statistic, p: chiSquareTail(statistic, k - 1), groups: [],
                 methods: order.map((j) => methods[j]), average: order.map((j) => average[j]) };
  for (let first = 0; first < k; first++) {
    let last = first;
    while (last + 1 < k && made.average[last + 1] - made.average[first] <= critical - 1e-12) last++;
    const before = made.groups[made.groups.length - 1];
    if (last > first && (!before || last > before[1])) made.groups.push([first, last]);
  }
  return made;
}

const short = (name) => name.length > 40 ? `${name.slice(0, 38).trimEnd()} …` : name;

function draw(made) {
  const k = made.methods.length, half = Math.ceil(k / 2), step = 24;
  const longest = Math.max(...made.methods.map((name) => short(name).length));
  const side = 75 + 7.6 * longest, span = Math.max(260, 44 * (k - 1)), axis = 58;
  const at = (rank) => side + span * (rank - 1) / (k - 1);
  const below = axis + 12 * made.groups.length + 14;
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
  svg.setAttribute("aria-label", made.methods.map((name, j) => `${name} ${made.average[j].toFixed(2)}`).join(", "));
  const end = at(1 + made.critical);
  line(at(1), 14, end, 14, 1.5);
  line(at(1), 9, at(1), 19, 1.5);
  line(end, 9, end, 19, 1.5);
  add("text", { x: end + 8, y: 18 }, `critical difference ${made.critical.toFixed(2)}`);
  line(at(1), axis, at(k), axis);
  for (let rank = 1; rank <= k; rank++) {
    line(at(rank), axis - 6, at(rank), axis);
    add("text", { x: at(rank), y: axis - 11, "text-anchor": "middle" }, rank);
  }
  made.groups.forEach(([first, last], place) => {
    const y = axis + 11 + 12 * place;
    line(at(made.average[first]) - 5, y, at(made.average[last]) + 5, y, 4);
  });
  made.methods.forEach((name, j) => {
    const left = j < half, y = below + step * (left ? j : k - 1 - j) + 10, x = at(made.average[j]);
    const edge = left ? at(1) - 14 : at(k) + 14;
    add("polyline", { points: `${x},${axis} ${x},${y} ${edge},${y}`, class: "soft" });
    const value = made.average[j].toFixed(2);
    add("text", { x: left ? edge - 6 : edge + 6, y: y + 4, "text-anchor": left ? "end" : "start" },
        left ? `${short(name)}  ${value}` : `${value}  ${short(name)}`);
  });
  return svg;
}

function told(made, diverged) {
  const lines = made.methods.length
    ? [`average rank over ${made.kept.length} data sets (1 is best): ${made.kept.join(", ")}`,
       `Friedman chi-square ${made.statistic.toFixed(2)}, p = ${made.p.toPrecision(2)}; critical difference ` +
         made.critical.toFixed(2),
       "joined: not told apart by Nemenyi's test at 5 %"]
    : [`Ranks need two methods, and two data sets that all of them have; there ${
         made.kept.length === 1 ? `is ${made.kept[0]}` : "is none"}.`];
  const lost = diverged.filter(([place, name]) => made.kept.includes(place) && made.methods.includes(name));
  if (lost.length) {
    lines.push(`diverged runs do not count: ${lost.map(([place, name, n]) => `${name} on ${place} (${n})`).join("; ")}`);
  }
  if (made.left.length) lines.push(`left out, where one of them is missing: ${made.left.join(", ")}`);
  return lines;
}

function makeChooser(section) {
  const data = JSON.parse(section.querySelector("script").textContent);
  const place = section.querySelector(".diagram");
  const choose = document.createElement("fieldset");
  choose.className = "choose";
  const legend = document.createElement("legend");
  legend.textContent = "Methods";
  choose.append(legend);
  const boxes = data.methods.map((method, j) => {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = data.chosen[j];
    label.append(box, ` ${method}${data.quick.includes(method) ? " (quick)" : ""}`);
    choose.append(label, " ");
    return box;
  });
  const update = () => {
    const made = ranking(data, data.methods.filter((_, j) => boxes[j].checked));
    const notes = document.createElement("ul");
    notes.className = "small plain";
    notes.append(...told(made, data.diverged).map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    place.replaceChildren();
    if (made.methods.length) {
      const figure = document.createElement("figure");
      figure.className = "picture drawn";
      figure.tabIndex = 0;
      figure.setAttribute("role", "group");
      figure.setAttribute("aria-label", "Average ranks");
      figure.append(draw(made));
      place.append(figure);
    }
    place.append(notes);
  };
  choose.addEventListener("change", update);
  place.before(choose);
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
