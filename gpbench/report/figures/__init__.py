"""Figures of experiments: one kind per file, one style.  Drawn from records, their traces and what they kept alone."""

import importlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpbench.errors import ConfigError, nearest
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell, absent, preset_line
from gpbench.report.cells import provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy import ndarray

KINDS = {"traces": "svg", "boundaries": "webp", "curves": "svg", "scaling": "svg"}
"""The kinds of figures, each with the format that suits a web page: thousands of points are lighter as pixels."""

Arrays = Callable[[str], "dict[str, ndarray]"]
"""From a record's id to the arrays of its trace.npz."""


def draw(experiment: Experiment, preset: str, found: Sequence[Cell], arrays: Arrays) -> "Figure":
    """The figure of an experiment.  The preset, what is missing and how the runs were made is said below it.

    Raises ConfigError where nothing is recorded, or the experiment asks for no kind of figure that there is.
    """
    from gpbench.report.figures import style

    assert experiment.figure is not None
    if (kind := experiment.figure.get("kind")) not in KINDS:
        raise ConfigError(f"{experiment.id}: no figure of kind {kind!r}; {nearest(str(kind), KINDS)}")
    if not any(cell.done for cell in found):
        raise ConfigError(f"nothing is recorded of {experiment.id} in preset {preset}; make it with"
                          f" gpbench reproduce {experiment.id} --preset {preset}")  # fmt: skip
    with style.settled():
        figure = importlib.import_module(f"gpbench.report.figures.{kind}").draw(experiment, found, arrays)
        told = [preset_line(found, preset, experiment.presets.get(preset, "")), absent(found, 2), _made_on(found)]
        style.caption(figure, experiment.title, [line for line in told if line])
    return figure


def save(figure: "Figure", path: Path) -> list[Path]:
    """PNG and PDF beside each other, `path` without its ending; the files written."""
    made = [path.with_name(f"{path.name}.{ending}") for ending in ("png", "pdf")]
    for file in made:
        write(figure, file)
    return made


def write(figure: "Figure", file: "Path | io.BytesIO", format: str | None = None) -> None:
    """One file of the format its ending says, without the date: the same records make the same bytes."""
    from gpbench.report.figures import style

    if isinstance(file, Path):
        file.parent.mkdir(parents=True, exist_ok=True)
        format = file.suffix[1:]
    dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with style.settled():
        figure.savefig(file, format=format, metadata=dates.get(format or ""))


def _made_on(found: Sequence[Cell]) -> str:
    told = provenance(dict(record) for cell in found for record in cell.records)
    return "; ".join(f"{name} {', '.join(told[name])}" for name in ("device", "precision", "jax", "commit"))
