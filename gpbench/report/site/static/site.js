// Search, sorting and filtering of tables, runs of a cell, and the choice of a rank diagram.  Every page but that of all
// results also works without scripts.  Text of records is set as text, never as HTML.
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

// Ranks: one section at a time, by task, metric and runs.
function makeRanks(sections) {
  const keys = ["task", "metric", "runs"];
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
