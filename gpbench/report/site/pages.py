"""The pages of the site: pairs of a path from the site's root and bytes, made one after another."""

import json
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any

import jinja2
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

import gpbench
from gpbench.analysis import marks
from gpbench.analysis.cells import CellRuns, Entry, entries
from gpbench.analysis.notes import provenance
from gpbench.analysis.printing import escape_json
from gpbench.analysis.tables import LEGEND, title
from gpbench.analysis.writers import grid_html
from gpbench.claims import report as claim_report
from gpbench.claims.verdicts import Verdict
from gpbench.errors import printable
from gpbench.papers import published
from gpbench.records.record import Record
from gpbench.report.site import charts, facts, views
from gpbench.report.site.facts import Facts, PlannedExperiment
from gpbench.report.site.sections import section
from gpbench.report.site.views import rank_sections

_STATIC = ("style.css", "site.js")
_SECTIONS = re.compile(r"^(?:method|protocol):.*\n(?:[ -].*\n)*", re.MULTILINE)
"""Sections of a configuration that the page of a cell shows; to parse all of it would take most of a report's time."""

_ENCODE = json.JSONEncoder(ensure_ascii=False).encode

Page = tuple[str, bytes]


class _Site:
    """Renders templates with the values that all pages share."""

    def __init__(self, facts_: Facts) -> None:
        self.facts = facts_
        self.environment = jinja2.Environment(
            loader=jinja2.PackageLoader("gpbench.report.site"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
            finalize=_visible,
        )
        self.environment.policies["json.dumps_function"] = lambda value, **_: escape_json(_ENCODE(value))
        self.environment.filters["record"] = _json
        self.environment.globals |= {
            "version": gpbench.__version__,
            "page": facts.page,
            "cell_page": facts.cell_page,
            "grid_html": lambda grid: Markup(grid_html(grid)),
            "title_of": lambda metric: title(metric, facts_.records),
            "badges": views.badges,
            "legend": LEGEND,
            "tied": marks.TIED,
            "papers": facts_.papers,
        }

    def page(self, path: str, template: str, heading: str, **values: Any) -> Page:
        """One page; `root` leads from it to the site's root."""
        root = "../" * path.count("/")
        text = self.environment.get_template(template).render(root=root, heading=heading, facts=self.facts, **values)
        return path, text.encode()

    def table(self, entries: Sequence[Entry]) -> views.Table:
        """These entries as a table."""
        return views.table(entries, self.facts.page_of)

    def by_metric(self, entries: Sequence[Entry], marks: bool = True) -> dict[str, views.Table]:
        """A table for each metric; with `marks` the best of each data set is marked, except in seconds."""
        if marks:
            entries = views.mark_datasets(entries)
        metrics = dict.fromkeys(entry.metric for entry in entries)
        return {metric: self.table([e for e in entries if e.metric == metric]) for metric in metrics}


def render_pages(site_facts: Facts) -> Iterator[Page]:
    """Makes all files of the site.

    Args:
        site_facts: The content of the site.

    Yields:
        The path of a file from the root of the site, and its bytes.
    """
    site = _Site(site_facts)
    for name in _STATIC:
        yield name, (resources.files(__package__) / "static" / name).read_bytes()
    presets = {planned.experiment.id: site_facts.presets(planned.experiment.id) for planned in site_facts.planned}
    marked = views.mark_datasets(site_facts.entries)
    yield site.page("results.html", "results.html", "All results", by_metric=site.by_metric(marked, marks=False))
    ranks = rank_sections(site_facts.records)
    yield site.page("ranks.html", "ranks.html", "Average ranks", sections=ranks)
    pictures: dict[str, str] = {}
    for planned in presets.values():
        files = [*_experiment(site, planned)]
        yield from files
        page, most = files[-1][0], max(planned, key=lambda p: p.n_recorded / max(1, p.n_runs))
        stem = f"{page.removesuffix('.html')}-{most.preset}"
        drawn = [name for name, _ in files if name.startswith(stem) and name.endswith((".svg", ".webp"))]
        pictures |= dict.fromkeys(drawn[:1], page)
    for paper, verdicts in site_facts.verdicts.items():
        yield from _claims(site, paper, verdicts)
    yield site.page(
        "index.html",
        "index.html",
        "Results",
        provenance=provenance(site_facts.records),
        presets=presets,
        agreements=views.agreements(site_facts.entries),
        best=site.table([entry for entry in marked if entry.mark == "best"]),
        claims={paper: claim_report.summary(verdicts) for paper, verdicts in site_facts.verdicts.items()},
        pictures=pictures,
        ranks=ranks[:1],
    )
    for paper, citation in site_facts.papers.items():
        yield _paper(site, paper, citation, [p for planned in presets.values() for p in planned])
    for name in site_facts.datasets:
        yield _dataset(site, name)
    for name in site_facts.method_names:
        ours = [entry for entry in site_facts.entries if entry.cell.method == name]
        yield site.page(
            facts.page("method", name),
            "method.html",
            name,
            description=site_facts.methods.get(name, ""),
            by_metric=site.by_metric(ours, marks=False),
        )
    for cell in site_facts.cells:
        yield _cell(site, cell)


def _claims(site: _Site, paper: str, judged: Sequence[Verdict]) -> Iterator[Page]:
    path = facts.page("claims", paper)
    badge = path.removesuffix(".html") + ".svg"
    yield badge, charts.badge(paper, judged)
    yield site.page(
        path,
        "claims.html",
        f"Claims of {paper}",
        paper=paper,
        verdicts=judged,
        badge=badge,
        summary=claim_report.summary(judged),
        note=claim_report.NOTE,
        kinds=views.VERDICT_BADGES,
        plot=charts.claim_plot,
        links=lambda verdict: views.links(verdict, site.facts.page_of),
        evidence=claim_report.evidence,
        marked=claim_report.marked,
    )


def _paper(site: _Site, paper: str, citation: str, planned: Sequence[PlannedExperiment]) -> Page:
    ours = [entry for entry in site.facts.entries if entry.published and entry.published.source == paper]
    rows = [row for row in published.rows_of("papers") if row["source"] == paper]
    experiments = [p for p in planned if p.experiment.paper == paper]
    return site.page(
        facts.page("paper", paper),
        "paper.html",
        paper,
        citation=citation,
        planned=experiments,
        table=site.table(ours),
        published=rows,
        notes=published.NOTES,
    )


def _dataset(site: _Site, name: str) -> Page:
    ours = [entry for entry in site.facts.entries if entry.cell.dataset == name]
    rows = [row for file in ("papers", "later") for row in published.rows_of(file) if row["dataset"] == name]
    metrics = dict.fromkeys(entry.metric for entry in ours if entry.metric != "seconds")
    dots = [charts.dots([e for e in ours if e.metric == metric], site.facts.page_of) for metric in metrics]
    return site.page(
        facts.page("dataset", name),
        "dataset.html",
        name,
        card=site.facts.cards.get(name, {}),
        by_metric=site.by_metric(ours),
        published=rows,
        notes=published.NOTES,
        charts=[*filter(None, dots)],
    )


def _experiment(site: _Site, presets: Sequence[PlannedExperiment]) -> Iterator[Page]:
    """The page of an experiment with its figures and tables, which are also files beside it."""
    experiment = presets[0].experiment
    path = facts.page("experiment", experiment.id)
    sections = []
    for planned in presets:
        values, files = section(site.facts, planned, path.removesuffix(".html"))
        sections.append(values)
        yield from files.items()
    yield site.page(path, "experiment.html", experiment.id, experiment=experiment, sections=sections)


def _cell(site: _Site, cell: CellRuns) -> Page:
    records = sorted(cell.records, key=lambda record: (record.split, record.seed))
    return site.page(
        facts.cell_page(cell),
        "cell.html",
        f"{cell.method} {cell.label}".rstrip() + f" on {cell.dataset} {cell.output}".rstrip(),
        cell=cell,
        records=records,
        metrics=list(dict.fromkeys(name for record in records for name in record.metrics)),
        table=site.table(entries([cell], ["all"])),
        curves=charts.learning_curves(cell, site.facts.trace),
        provenance=provenance(records),
        config="".join(_SECTIONS.findall(site.facts.config(cell.records[-1].id))),
    )


def _visible(value: Any) -> Any:
    """A text of a page with escapes for controls of direction and the like; the ends of its lines stay."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "\n".join(map(printable, value.split("\n")))


def _json(record: Record) -> Markup:
    """A record with a line for each field, which is ten times faster than an indent."""

    def lines(fields: dict[str, Any]) -> str:
        texts = (f" {_ENCODE(key)}: {_ENCODE(value)}" for key, value in fields.items())
        return escape_json("{\n" + ",\n".join(texts) + "\n}")

    return htmlsafe_json_dumps(record.to_json(), dumps=lines)
