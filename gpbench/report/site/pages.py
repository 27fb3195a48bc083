"""The pages of the site: pairs of a path from the site's root and bytes, made one after another."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from gpbench.analysis.cells import CellRuns, Entry, entries, entry_notes
from gpbench.analysis.comparison import LEAKED_MARK
from gpbench.analysis.experiment import table
from gpbench.analysis.grouping import gather
from gpbench.analysis.leaderboard_sheet import place_sheet
from gpbench.analysis.printing import escape_json, number
from gpbench.analysis.provenance import provenance
from gpbench.analysis.reproduction import outcomes, total
from gpbench.analysis.tables import MEANINGS, title
from gpbench.analysis.writers.html import grid_html
from gpbench.claims import report as claim_report
from gpbench.claims import sentences
from gpbench.claims.grades import SCALE, badge_grade
from gpbench.claims.verdicts import count
from gpbench.errors import listed, printable
from gpbench.papers import published
from gpbench.records.record import Record
from gpbench.report.figures.comparisons import draw_ranking
from gpbench.report.figures.printed import draw_printed
from gpbench.report.site import charts, facts, front, views
from gpbench.report.site.facts import Facts, PlannedExperiment
from gpbench.report.site.views import drawn, section
from gpbench.version import __version__

_SECTIONS = re.compile(r"^(?:method|protocol):.*\n(?:[ -].*\n)*", re.MULTILINE)
"""Sections of a configuration that the page of a cell shows; to parse all of it would take most of a report's time."""

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode

_Page = tuple[str, bytes]


class _Site:
    """Renders templates with the values that all pages share."""

    def __init__(self, site_facts: Facts) -> None:
        self.facts = site_facts
        self.environment = jinja2.Environment(
            loader=jinja2.PackageLoader("gpbench.report.site"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
            finalize=_visible,
        )
        self.environment.policies["json.dumps_function"] = lambda value, **_: escape_json(_ENCODE(value))
        self.environment.filters |= {"record": _json}
        self.environment.globals |= {
            "facts": site_facts,
            "version": __version__,
            "page": facts.page,
            "grid_html": lambda grid: Markup(grid_html(grid)),
            "title_of": cache(lambda metric: title(metric, site_facts.records)),  # which looks through all records
            "tied": MEANINGS["tied"],
            "number": number,
            "scale": SCALE,
            "tones": lambda counts: [(grade.tone, counts[grade.word]) for grade in SCALE],
            "kinds": {grade.word: grade.tone for grade in SCALE},
            "claims": claim_report,
            "charts": charts,
            "views": views,
            "effect": sentences.effect,
            "notes": published.NOTES,
        }

    def page(self, path: str, heading: str, template: str = "", **values: Any) -> _Page:
        """One page, by the template of its folder or by another one; `root` leads from it to the site's root."""
        name = template or f"{path.partition('/')[0].removesuffix('.html')}.html"
        root = "../" * path.count("/")
        return path, self.environment.get_template(name).render(root=root, heading=heading, **values).encode()


def render_pages(site_facts: Facts) -> Iterator[_Page]:
    """All files of the site: pairs of a path from its root and bytes."""
    site = _Site(site_facts)
    for file in (resources.files(__package__) / "static").iterdir():
        yield file.name, file.read_bytes()
    presets = {planned.experiment.id: site_facts.presets(planned.experiment.id) for planned in site_facts.planned}
    marked = views.mark_datasets(site_facts.entries)
    yield site.page("results.html", "All results", table=_rows(site, marked), n=len(marked))
    if printed := any(not number.exclusion for number in site_facts.compared):
        yield "printed.svg", drawn(draw_printed(site_facts.compared))
    tasks = {name: str(card.get("task", "others")) for name, card in site_facts.cards.items()}
    ranks = views.rank_sections(site_facts.records, tasks)
    yield site.page("ranks.html", "Average ranks", sections=ranks)
    yield from ((section["file"], drawn(draw_ranking(section["ranking"]))) for section in ranks)
    pictures: list[tuple[str, str]] = []
    for planned in presets.values():
        files = [*_experiment(site, planned)]
        yield from files
        pictures += [(name, files[-1][0]) for name, _ in files if name.endswith((".svg", ".webp"))][:1]
    for paper, verdicts in site_facts.verdicts.items():
        path, summary = facts.page("claims", paper), claim_report.summary(verdicts)
        badge = path.removesuffix(".html") + ".svg"
        colour = badge_grade([verdict.word for verdict in verdicts]).colour
        yield site.page(badge, f"{paper} claims", "badge.svg", counts=summary, colour=colour)
        yield site.page(path, f"Claims of {paper}", paper=paper, verdicts=verdicts, badge=badge, summary=summary)
    yield "search.js", f"const SEARCH = {escape_json(_ENCODE([*front.search_index(site_facts, presets)]))};\n".encode()
    numbers = gather((ours.paper, ours) for ours in site_facts.compared)
    by_paper = [*numbers.items(), *((paper, []) for paper in site_facts.verdicts if paper not in numbers)]
    headline = total(site_facts.compared)
    yield site.page("badge.svg", "gpbench", "badge.svg", counts=headline, colour=SCALE[0 if printed else -1].colour)
    yield site.page(
        "index.html",
        "Gaussian processes at scale, measured",
        provenance=provenance(site_facts.records),
        presets=presets,
        boards=front.boards(site_facts),
        summaries=[(p, own, outcomes(own), total(own), count(site_facts.verdicts.get(p, ()))) for p, own in by_paper],
        counts=outcomes(site_facts.compared),
        headline=headline,
        printed=printed,
        datasets=front.by_task_and_size(site_facts),
        pictures=pictures[:2],
        ranks=ranks[:1],
    )
    for paper in site_facts.papers:
        yield _paper(site, paper, [p for planned in presets.values() for p in planned])
    for name in site_facts.datasets:
        yield _dataset(site, name)
    for name in site_facts.method_names:
        tables = views.by_cell([e for e in site_facts.entries if e.cell.method == name], site_facts.page_of)
        places = [(board, place_sheet(board, name)) for board in site_facts.boards if name in board.methods]
        yield site.page(facts.page("method", name), name, tables=tables, places=places)
    for cell in site_facts.cells:
        yield from _cell(site, cell)


def _paper(site: _Site, paper: str, planned: Sequence[PlannedExperiment]) -> _Page:
    headings = {"worse": "Worse than printed", "better": "Better than printed", "equal": "Equal"}
    own = [item for item in site.facts.compared if item.paper == paper]
    no_target, page_of = "Printed numbers that are no targets", site.facts.page_of
    heading_of = lambda item: no_target if item.exclusion else headings[item.outcome]
    compared = gather((heading_of(item), (item, page_of[item.entry.cell.records[0].id])) for item in own)
    return site.page(
        facts.page("paper", paper),
        paper,
        planned=[p for p in planned if p.experiment.paper == paper],
        compared={name: compared[name] for name in (*headings.values(), no_target) if name in compared},
        exclusions=dict(Counter(item.exclusion for item in own if item.exclusion).most_common()),
        summary=total(own) if outcomes(own) else "",
        counts=[(grade, n) for grade in SCALE if (n := count(site.facts.verdicts.get(paper, ()))[grade.word])],
        published=[row for row in published.rows_of("papers") if row["source"] == paper],
    )


def _dataset(site: _Site, name: str) -> _Page:
    ours = [entry for entry in site.facts.entries if entry.cell.dataset == name]
    groups: dict[tuple[str, str], dict[str, Entry]] = {}
    several = len({entry.cell.split_set for entry in ours}) > 1
    for entry in (entry for entry in ours if entry.metric != "seconds"):
        on = " ".join(filter(None, [entry.cell.output, entry.cell.split_set if several else ""]))
        label = f"{entry.cell.method} {entry.cell.label}".rstrip() + ("" if entry.cell.held_out else LEAKED_MARK)
        groups.setdefault((entry.metric, on), {})[label] = entry
    dots = {", ".join(filter(None, key)): charts.dots(group, site.facts.page_of) for key, group in groups.items()}
    card = site.facts.cards.get(name, {})
    records = [record for entry in ours for record in entry.cell.records]
    # the names of inputs and target are those of its runs or of its card
    inputs = next((r.inputs for r in records if r.inputs), None) or listed(map(str, card.get("columns") or ()))
    target = next((r.target for r in records if r.target), None) or card.get("target")
    names = {"inputs": ": ".join(str(text) for text in (card.get("inputs"), inputs) if text), "target": target}
    every = {key: card.get(key) for key in ("task", "rows", "inputs", "outputs", "target", "licence", "cite")} | names
    return site.page(
        facts.page("dataset", name),
        name,
        facts_of={key: value for key, value in every.items() if value},
        tables=views.by_cell(views.mark_datasets(ours), site.facts.page_of),
        published=[row for file in ("papers", "later") for row in published.rows_of(file) if row["dataset"] == name],
        dots={name: chart for name, chart in dots.items() if chart},
    )


def _experiment(site: _Site, presets: Sequence[PlannedExperiment]) -> Iterator[_Page]:
    """The page of an experiment with its figures and tables, which are also files beside it."""
    experiment = presets[0].experiment
    path = facts.page("experiment", experiment.id)
    sections: list[dict[str, Any]] = []
    for planned in presets:  # of several presets the first has the figures
        with_figures = not any(values["figures"] for values in sections)
        values, files = section(site.facts, planned, path.removesuffix(".html"), with_figures=with_figures)
        sections.append(values)
        yield from files.items()
    complete = [p for p in site.facts.planned if p.experiment.id == experiment.id and 0 < p.n_recorded == p.n_runs]
    answers = [(p.preset, table(experiment, p.preset, p.cells).answer) for p in complete if experiment.answer]
    yield site.page(path, experiment.id, experiment=experiment, sections=sections, answers=answers[-1:])


def _cell(site: _Site, cell: CellRuns) -> Iterator[_Page]:
    """The page of a cell, and the file of its configuration, which many cells share."""
    records = sorted(cell.records, key=lambda record: (record.split, record.seed))
    config = "".join(_SECTIONS.findall(site.facts.config(cell.records[-1].id))).encode()
    file = f"config/{hashlib.sha256(config).hexdigest()[:12]}.txt" if config else ""
    if file:
        yield file, config
    yield site.page(
        facts.cell_page(cell),
        f"{cell.method} {cell.label}".rstrip() + f" on {cell.dataset} {cell.output}".rstrip(),
        cell=cell,
        records=records,
        **_records(records),
        tables=views.by_cell(entries([cell], ["all"]), site.facts.page_of),
        curves=charts.learning_curves(cell, site.facts.trace),
        provenance=provenance(records),
        config=file,
    )


def _records(records: Sequence[Record]) -> dict[str, Any]:
    """The fields that all of these records share, and the others as lists by name, one value a record."""
    every = [record.to_json() for record in records]
    names = dict.fromkeys(name for fields in every for name in fields)
    columns = {name: [fields.get(name) for fields in every] for name in names}
    own = [name for name, values in columns.items() if name == "id" or any(value != values[0] for value in values)]

    def by_field(values: list[Any]) -> Any:
        if all(isinstance(value, dict) and value.keys() == values[0].keys() for value in values):
            return {field: [value[field] for value in values] for field in values[0]}
        return values

    return {
        "shared": {name: value for name, (value, *_) in columns.items() if name not in own and value is not None},
        "columns": {name: by_field(columns[name]) for name in own},
    }


def _rows(site: _Site, entries: Sequence[Entry]) -> dict[str, Any]:
    """All entries for site.js, which draws them as a table with filters: cells, each with its metrics."""
    cells: dict[str, list[Any]] = {}
    footnotes = entry_notes(entries)
    for entry in entries:
        cell, view = entry.cell, views.view(entry, site.facts.page_of, footnotes)
        page = view["page"]
        row = cells.setdefault(page, [cell.dataset, cell.output, cell.method, cell.label, page, {}, []])
        row[-2] |= dict.fromkeys(text for _, text in view["badges"])
        mean = None if entry.mean is None else float(f"{entry.mean:.7g}")
        mark = {"best": "*", "tied": "≈"}.get(entry.mark, "")
        row[-1].append([entry.metric, view["value"], mean, mark, entry.n_splits, view["published"], view["delta"]])
    return {
        "pages": {
            "dataset": {name: facts.page("dataset", name) for name in site.facts.datasets},
            "method": {name: facts.page("method", name) for name in site.facts.method_names},
        },
        "tasks": {name: str(card.get("task", "")) for name, card in site.facts.cards.items()},
        "cells": [[*row[:-2], ", ".join(row[-2]), row[-1]] for row in cells.values()],
    }


def _visible(value: Any) -> Any:
    """A text of a page with escapes for controls of direction and the like; the ends of its lines stay."""
    if not isinstance(value, str) or isinstance(value, Markup) or (value.isprintable() and value.isascii()):
        return value
    return "\n".join(map(printable, value.split("\n")))


def _json(fields: Mapping[str, Any]) -> Markup:
    """Fields as JSON, to stand in a page as text: quotes stay, which makes records a third as long."""
    text = escape_json(_COMPACT(fields))
    return Markup(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
