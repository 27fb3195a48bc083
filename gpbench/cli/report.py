"""`gpbench report`: a static site of all recorded runs, beside the published values."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gpbench import paths
from gpbench.analysis import printing
from gpbench.analysis.leaderboard import DIVISIONS, BoardRuns, board_of
from gpbench.api.listings import descriptions
from gpbench.claims import definition as claims
from gpbench.claims.verdicts import Verdict
from gpbench.cli.output import Answer, Named, output_folder
from gpbench.data import cards
from gpbench.errors import AbsentError, ConfigError, GpbenchError, require
from gpbench.experiments import definition, plan
from gpbench.log import log
from gpbench.records import collection
from gpbench.records.record import Record
from gpbench.records.store import Store, latest, recorded
from gpbench.records.unions import open_stores, union
from gpbench.report import site
from gpbench.report.site import PlannedExperiment, facts


def report(
    *, out: Path | None = None, docs: str = "", config_dir: Sequence[Path] = (), results: Named = None
) -> Answer:
    """Make a static site from recorded runs: a page for each paper, experiment, data set, method and cell.  It opens
    from disk, without a web server.

    Args:
        out (DIR): default: site/ in the results folder
        docs (ADDRESS): link to the documentation, an address or a path from the site
        config_dir: a folder with your own experiment/, claims/, dataset/, method/ files
        json: print JSON: start page, numbers of files, bytes, records

    examples:
      gpbench report --out site
    """
    stores = open_stores(results)
    out = out or output_folder(results) / "site"
    site.check_folder(out)
    is_address = not docs or re.fullmatch(r"https?://\S+|[^:]*(/|\.html)", docs)
    require(is_address, f"--docs {docs}: neither an http address nor a page, as ../index.html", ConfigError)
    records = latest(recorded(stores))
    readable, faults = cards.readable(config_dir)
    for fault in faults:
        log.warning(f"left out: {fault}")
    planned = list(_planned(records, config_dir))
    store = union(stores)
    content = site.Facts(
        records=records,
        planned=planned,
        verdicts=_verdicts(records, planned, config_dir, store),
        cards=readable,
        methods={item["name"]: item["description"] for item in descriptions("method", config_dir)},
        trace=store.trace,
        config=store.config_text,
        figures=_figures(planned),
        boards=[*_boards(records, planned)],
        shipped={run for file in paths.shipped_files() for run in collection.read_times(file)},
        folders=config_dir,
        docs=docs,
    )
    files = site.write_site(out, site.render_pages(content))
    size = sum(file.stat().st_size for file in files)
    start, n_runs = out / "index.html", printing.counted(len(records), "run")
    text = f"{start}: {printing.counted(len(files), 'file')}, {size / 1e6:.1f} MB, of {n_runs}"
    return Answer({"start": str(start), "files": len(files), "bytes": size, "records": len(records)}, text)


def _boards(records: Sequence[Record], planned: Sequence[PlannedExperiment]) -> Iterator[BoardRuns]:
    """The boards of all divisions with runs of two methods."""
    for division in DIVISIONS.values():
        cells = [cell for item in planned if item.experiment.id == division.experiment for cell in item.cells]
        methods = {run.id: cell.job["method"] for cell in cells for run in cell.records}
        with suppress(AbsentError):
            yield board_of(records, division, planned=methods)


def _planned(records: Sequence[Record], config_dirs: Sequence[Path]) -> Iterator[PlannedExperiment]:
    """Every experiment in every preset with its records, or the problem that keeps it from being planned."""
    ours, by_id = definition.names(), {record.id: record for record in records}
    of_ours, of_others = plan.Planner(), plan.Planner(config_dirs)
    for id in definition.names(config_dirs):
        experiment = definition.read(id, config_dirs)
        planner = of_ours if id in ours else of_others
        for preset in definition.PRESETS:
            try:
                yield PlannedExperiment(experiment, preset, plan.plan(experiment, preset, planner, by_id))
            except GpbenchError as error:
                yield PlannedExperiment(experiment, preset, problem=str(error))


def _verdicts(
    records: Sequence[Record], planned: Sequence[PlannedExperiment], config_dirs: Sequence[Path], store: Store
) -> dict[str, list[Verdict]]:
    """The verdicts on each file of claims that recorded runs can judge; one that is wrong is named and left out."""
    judged = {}
    for name in claims.files(config_dirs):
        try:
            if verdicts := facts.verdicts(claims.read(name, config_dirs), planned, records, store.trace):
                judged[name] = verdicts
        except ConfigError as fault:
            log.warning(f"left out: {fault}")
    return judged


def _figures(planned: Sequence[PlannedExperiment]) -> dict[tuple[str, str], Path]:
    """The figures that are committed beside the records of gpbench's checkout, by experiment and label."""
    folder = paths.conf_dir().parent / "results"
    names = {(item.experiment.id, label) for item in planned for label in item.experiment.pictures}
    files = {(id, label): folder / f"{id}{label and '-'}{label}.png" for id, label in names}
    return {name: file for name, file in files.items() if file.is_file()}
