"""Runs of an experiment's table that are not recorded: their number, and a table of them."""

from collections.abc import Sequence

from gpbench.analysis.printing import counted
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell, names


def missing_line(experiment: Experiment, preset: str, planned: Sequence[Cell]) -> list[str]:
    """The methods without a run, up to three by name, and the number of missing runs; no line where nothing is."""
    missing, total = sum(len(cell.missing) for cell in planned), sum(len(cell.splits) for cell in planned)
    if not missing:
        return []
    with_runs = {_method(experiment, cell) for cell in planned if cell.records}
    absent = [name for name in dict.fromkeys(_method(experiment, cell) for cell in planned) if name not in with_runs]
    command = f"`gpbench table {experiment.id} --preset {preset} --missing`"
    names = ", ".join(absent) if len(absent) <= 3 else counted(len(absent), "method")
    methods = f"{names} not run; " if absent else ""
    return [f"{methods}{missing:,} of {total:,} runs missing: {command} lists them."]


def missing_runs(experiment: Experiment, preset: str, planned: Sequence[Cell]) -> Sheet:
    """Makes the sheet of missing runs: a line for each cell of the experiment that lacks some."""
    blocks = experiment.table.get("blocks", [])
    rows = [
        {
            "table": ", ".join(experiment.labels_of(blocks, cell.job)) or None,
            "dataset": cell.dataset,
            "output": cell.output or None,
            "method": _method(experiment, cell),
            "missing": len(cell.missing),
            "planned": len(cell.splits),
            "words": names(cell, planned),
        }
        for cell in planned
        if cell.missing
    ]
    columns = [name for name in ("table", "dataset", "output", "method") if any(row[name] for row in rows)]
    lines = tuple((*(str(row[n] or "") for n in columns), f"{row['missing']} of {row['planned']}") for row in rows)
    n_missing, n_planned = (sum(map(len, runs)) for runs in zip(*((c.missing, c.splits) for c in planned)))
    return Sheet(
        title=f"Missing runs of {experiment.id}, preset {preset}: {n_missing:,} of {n_planned:,}.",
        summary=[f"`gpbench reproduce {experiment.id} --preset {preset}` runs them."] if rows else [],
        grids=[Grid("missing runs", (*columns, "missing"), lines, prose=True)] if rows else [],
        rows=rows,
        name=experiment.id,
    )


def _method(experiment: Experiment, cell: Cell) -> str:
    """The name of a cell's method in a table of either kind."""
    keys = experiment.table.get("columns", experiment.table.get("label", []))
    return "-".join(experiment.labels_of(keys, cell.job))
