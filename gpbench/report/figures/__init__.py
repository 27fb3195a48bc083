"""Figures of experiments, of comparisons and of runs, drawn from records and their arrays alone."""

import contextlib
import io
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench.analysis.provenance import provenance, seconds_lines
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.layout import FIGURES
from gpbench.experiments.plan import Cell, absent, preset_lines, require_recorded
from gpbench.outputs import output

__all__ = ["Arrays", "draw", "encode", "save", "write"]

if "matplotlib" not in sys.modules:
    # Matplotlib cannot be imported where the MPLBACKEND of a notebook is not installed; figures need no backend.
    _backend = os.environ.pop("MPLBACKEND", None)
    import matplotlib

    if _backend is not None:
        os.environ["MPLBACKEND"] = _backend
        with contextlib.suppress(ValueError):
            matplotlib.rcParams["backend"] = _backend

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy import ndarray

    from gpbench.report.figures.style import Picture

Arrays = Callable[[str], "dict[str, ndarray]"]  # maps the id of a record to the arrays of its trace.npz


def draw(experiment: Experiment, preset: str, planned: Sequence[Cell], arrays: Arrays) -> "Picture":
    """Draws the figure of an experiment, with notes below the panels, or beside it as its `notes`."""
    from gpbench.report.figures import style

    kind = experiment.figure["kind"]
    require_recorded(experiment.id, preset, planned)
    # of records that were collected without their traces every panel would be empty
    needed = experiment.figure["panels"] if kind == "traces" else FIGURES[kind].arrays
    ids = (record.id for cell in planned for record in cell.finished)
    if needed and not any(name in run for run in map(arrays, ids) for name in needed):
        noun, remedy = ("a trace", "") if kind == "traces" else ("kept its arrays", " with run.keep=true")
        mend = f"use the results folder of the runs, or make them again{remedy}"
        raise ConfigError(f"{experiment.id}: no run here has {noun}, so there is nothing to draw; {mend}")
    records = [record for cell in planned for record in cell.records]
    facts = provenance(records)
    of_runs = "; ".join(f"{name} {', '.join(facts[name])}" for name in ("device", "precision", "jax", "commit"))
    # along an axis of seconds; devices are the other axis of `scaling`
    axes = {"traces": (), "scaling": ("devices", "processes")}
    seconds = seconds_lines(records, axes[kind]) if kind in axes else []
    with style.context():
        figure = FIGURES[kind].function(experiment, planned, arrays)
        preset_text = " ".join([*preset_lines(planned, preset), experiment.presets.get(preset, "")])
        notes = [*figure.get_supxlabel().splitlines(), preset_text, absent(planned, 2), of_runs, *seconds]
        notes = [line for line in (*figure.notes, *notes) if line]
        if figure.notes:
            figure.notes = notes
            style.head(figure, experiment.title)
        else:
            style.caption(figure, experiment.title, notes)
    return figure


def save(figure: "Figure", path: Path) -> list[Path]:
    """Writes a figure as PNG and PDF, and its title and notes, if they are not in it, as Markdown: their paths."""
    files = [path.with_name(f"{path.name}.{ending}") for ending in ("png", "pdf")]
    for file in files:
        write(figure, file)
    if notes := getattr(figure, "notes", ()):
        title = " ".join(figure.get_suptitle().split())
        look: dict[str, Any] = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}
        items = [textwrap.fill(f"- {note}", 120, **look) for note in notes]
        files.append(path.with_name(f"{path.name}.md"))
        with output(files[-1]) as page:
            page.write("\n".join([title, "", f"![{title}]({files[0].name})", "", *items, ""]).encode())
    return files


def write(figure: "Figure", file: Path) -> None:
    """Writes a figure in the format that the ending names; a file is whole, or as it was."""
    picture = encode(figure, file.suffix[1:].lower())
    with output(file) as whole:
        whole.write(picture)


def encode(figure: "Figure", format: str) -> bytes:
    """A figure in a format, with its title and without a date, so that equal figures have equal bytes."""
    from gpbench.report.figures import style

    title = {"Title": " ".join(figure.get_suptitle().split())}
    metadata = {"png": title, "pdf": {**title, "CreationDate": None}, "svg": {**title, "Date": None}}
    style.take_literally(figure)
    picture = io.BytesIO()
    with style.context():
        # None is the resolution of the style, at which the shaded panels of a large figure would take megabytes.
        dpi = 100 if len(figure.axes) > 12 else None
        # Laid out here, because savefig would draw the whole figure once more for it.
        if engine := figure.get_layout_engine():
            engine.execute(figure)
            figure.set_layout_engine("none")
        figure.savefig(picture, format=format, metadata=metadata.get(format), dpi=dpi)
    return picture.getvalue()
