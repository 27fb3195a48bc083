"""The pages of a site, one after another: (path from the site's root, bytes)."""

import io
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any

import jinja2
import yaml

import gpbench
from gpbench.errors import ConfigError
from gpbench.experiments import status
from gpbench.papers import published
from gpbench.report import experiment as reports
from gpbench.report import figures, formats
from gpbench.report.cells import Cell, Entry, entries, provenance
from gpbench.report.site import facts, views
from gpbench.report.site.facts import Facts, Planned
from gpbench.report.site.ranks import groups
from gpbench.report.tables import LEGEND, title

_STATIC = ("style.css", "site.js")


class _Site:
    """Renders templates with what all pages share."""

    def __init__(self, facts_: Facts) -> None:
        self.facts = facts_
        self.environment = jinja2.Environment(
            loader=jinja2.PackageLoader("gpbench.report.site"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        self.environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
        self.environment.globals |= {
            "version": gpbench.__version__, "page": facts.page, "cell_page": facts.cell_page, "title_of": title,
            "badges": views.badges, "legend": LEGEND, "papers": facts_.papers,
        }  # fmt: skip

    def page(self, path: str, template: str, heading: str, **shown: Any) -> tuple[str, bytes]:
        """One page; `root` leads from it to the site's root."""
        root = "../" * path.count("/")
        text = self.environment.get_template(template).render(root=root, heading=heading, facts=self.facts, **shown)
        return path, text.encode()

    def table(self, made: Sequence[Entry], marks: bool = False) -> views.Table:
        """These entries as a table, the best of each data set marked if asked."""
        return views.table(made, self.facts.page_of, views.marks(made) if marks else {})


def pages(of: Facts) -> Iterator[tuple[str, bytes]]:
    """Every file of the site."""
    site = _Site(of)
    for name in _STATIC:
        yield name, (resources.files(__package__) / "static" / name).read_bytes()
    experiments = {planned.experiment.id: planned.experiment for planned in of.planned}
    shown = {id: of.presets(id) for id in experiments}
    yield site.page("index.html", "index.html", "Results", provenance=provenance(of.records), shown=shown)
    yield site.page("results.html", "results.html", "All results", by_metric=_by_metric(site, of.entries, marks=True))
    ranked = {f"ranks-{k}.svg": group for k, group in enumerate(groups(of.records), 1)}
    yield from ((name, group.picture) for name, group in ranked.items())
    yield site.page("ranks.html", "ranks.html", "Average ranks", groups=ranked)
    for id, experiment in experiments.items():
        yield from _experiment(site, id, experiment, shown[id])
    for paper, citation in of.papers.items():
        ours = [e for e in of.entries if e.published and e.published.source == paper]
        printed = [row for row in published.rows_of("papers") if row["source"] == paper]
        made_of = [planned for id, presets in shown.items() if experiments[id].paper == paper for planned in presets]
        yield site.page(facts.page("paper", paper), "paper.html", paper, citation=citation, planned=made_of,
                        table=site.table(ours), printed=printed, notes=published.NOTES)  # fmt: skip
    for name in of.datasets:
        mine = [e for e in of.entries if e.cell.dataset == name]
        printed = [row for file in ("papers", "later") for row in published.rows_of(file) if row["dataset"] == name]
        yield site.page(facts.page("dataset", name), "dataset.html", name, card=of.cards.get(name, {}),
                        by_metric=_by_metric(site, mine, True), printed=printed, notes=published.NOTES)  # fmt: skip
    for name in of.method_names:
        mine = [e for e in of.entries if e.cell.method == name]
        yield site.page(facts.page("method", name), "method.html", name, description=of.methods.get(name, ""),
                        by_metric=_by_metric(site, mine))  # fmt: skip
    for cell in of.cells:
        yield _cell(site, cell)


def _by_metric(site: _Site, made: Sequence[Entry], marks: bool = False) -> dict[str, views.Table]:
    names = dict.fromkeys(entry.metric for entry in made)
    return {name: site.table([e for e in made if e.metric == name], marks and name != "seconds") for name in names}


def _experiment(site: _Site, id: str, experiment: Any, presets: Sequence[Planned]) -> Iterator[tuple[str, bytes]]:
    """The page of an experiment with its figures and tables, each of these also as a file beside it."""
    path = facts.page("experiment", id)
    stem = path.removesuffix(".html")
    shown = []
    for planned in presets:
        name = f"{stem}-{planned.preset}"
        told: dict[str, Any] = {"planned": planned, "picture": "", "blocks": ()}
        told["lacking"] = [(status.names(c, planned.cells), c) for c in planned.cells if c.missing]
        words = experiment.presets.get(planned.preset, "")
        told["preset_line"] = status.preset_line(planned.cells, planned.preset, words)
        if planned.have and experiment.figure and (picture := _picture(site, planned)):
            told["picture"] = f"{name}.{figures.KINDS[experiment.figure['kind']]}"
            yield told["picture"], picture
        if planned.have and experiment.table:
            told |= _table(site, planned)
            sheet = reports.table(experiment, planned.preset, planned.cells, formats.MARKS["csv"])
            yield f"{name}.csv", (formats.as_csv(sheet) + "\n").encode()
            told["csv"] = f"{name}.csv"
        shown.append(told)
    yield site.page(path, "experiment.html", id, experiment=experiment, shown=shown)


def _table(site: _Site, planned: Planned) -> dict[str, Any]:
    blocks = reports.blocks(planned.experiment, planned.cells)
    made = [entry for block in blocks for of in block.lines.values() for entry in of.values()]
    marks = {key: mark for block in blocks for key, mark in block.marks().items()}
    table = views.table(made, site.facts.page_of, marks)
    by_id = {id(view.entry): view for view in table.views}
    rows = [
        (block.title, {line: {c: by_id[id(e)] for c, e in of.items()} for line, of in block.lines.items()})
        for block in blocks
    ]
    records = [record for cell in planned.cells for record in cell.records]
    return {
        "blocks": rows,
        "columns": reports.columns(planned.experiment, planned.cells),
        "footnotes": table.footnotes,
        "verdict": reports.verdict(made),
        "made_with": reports.made_with(records, made),
    }


def _picture(site: _Site, planned: Planned) -> bytes | None:
    try:
        figure = figures.draw(planned.experiment, planned.preset, planned.cells, site.facts.trace)
    except ConfigError:  # all of its runs diverged, or the file names no kind of figure: the page has none
        return None
    file = io.BytesIO()
    figures.write(figure, file, figures.KINDS[(planned.experiment.figure or {})["kind"]])
    return file.getvalue()


def _cell(site: _Site, cell: Cell) -> tuple[str, bytes]:
    config = site.facts.config(cell.records[-1]["id"])
    asked = {key: config[key] for key in ("method", "protocol") if key in config}
    records = sorted(cell.records, key=lambda record: (record["split"], record["seed"]))
    return site.page(
        facts.cell_page(cell),
        "cell.html",
        f"{cell.method} {cell.label}".rstrip() + f" on {cell.dataset} {cell.output}".rstrip(),
        cell=cell,
        records=records,
        metrics=list(dict.fromkeys(name for record in records for name in record["metrics"])),
        table=site.table(entries([cell], ["all"])),
        provenance=provenance(records),
        config=yaml.safe_dump(asked, sort_keys=False, allow_unicode=True) if asked else "",
    )
