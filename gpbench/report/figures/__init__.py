"""Figures of experiments, one kind per file, drawn from records and their arrays alone."""

import importlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpbench.analysis.provenance import provenance, seconds_lines
from gpbench.errors import ConfigError, StorageError, nearest
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell, absent, preset_line, require_recorded

__all__ = ["KINDS", "Arrays", "draw", "save", "write"]

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy import ndarray


class Kind(NamedTuple):
    """A kind of figure.

    Args:
        draw: Dotted path of the function that draws it from an experiment, its cells and `Arrays`.
        format: Format on web pages: WebP where a vector image of all points would be too large.
        arrays: Arrays of a run, without one of which the figure shows nothing of it; for `traces` its panels are these.
    """

    draw: str
    format: str = "svg"
    arrays: tuple[str, ...] = ()


_FIGURES = "gpbench.report.figures"
KINDS = {
    "traces": Kind(f"{_FIGURES}.traces.draw"),
    "boundaries": Kind(f"{_FIGURES}.predictions.draw_boundaries", "webp", ("kept_grid",)),
    "curves": Kind(f"{_FIGURES}.predictions.draw_curves", arrays=("kept_mean",)),
    "scaling": Kind(f"{_FIGURES}.scaling.draw_scaling"),
    "surfaces": Kind(f"{_FIGURES}.predictions.draw_surfaces", "webp", ("kept_mean",)),
    "dots": Kind(f"{_FIGURES}.dots.draw"),
    "ranks": Kind(f"{_FIGURES}.comparisons.draw_ranks"),
    "effects": Kind(f"{_FIGURES}.effects.draw", "webp", ("kept_effect1_inputs", "kept_effect2_inputs")),
    "orders": Kind(f"{_FIGURES}.scaling.draw_orders"),
}
"""Kinds of figures by the name that an experiment gives."""

Arrays = Callable[[str], "dict[str, ndarray]"]
"""Maps the id of a record to the arrays of its trace.npz."""


def draw(experiment: Experiment, preset: str, planned: Sequence[Cell], arrays: Arrays) -> "Figure":
    """Draws the figure of an experiment; below it the lines its kind writes there, preset, missing runs, provenance.

    Args:
        experiment: one that has a figure.
        preset: the preset of the planned cells.
        planned: its cells with their records (`gpbench.experiments.status.find`).
        arrays: see `Arrays`.

    Raises ConfigError where nothing is recorded, where no run has the arrays that the figure is of, and for an unknown
    kind of figure.
    """
    from gpbench.report.figures import style

    assert experiment.figure is not None
    if (kind := experiment.figure.get("kind")) not in KINDS:
        raise ConfigError(f"{experiment.id}: no figure of kind {kind!r}; {nearest(str(kind), KINDS)}")
    require_recorded(experiment.id, preset, planned)
    _check_arrays(experiment, planned, arrays)
    with style.context():
        module, _, function = KINDS[kind].draw.rpartition(".")
        figure = getattr(importlib.import_module(module), function)(experiment, planned, arrays)
        preset_text = preset_line(planned, preset, experiment.presets.get(preset, ""))
        of_kind = figure.get_supxlabel().splitlines()
        notes = [*of_kind, preset_text, absent(planned, 2), _provenance(planned), *_seconds(kind, planned)]
        style.caption(figure, experiment.title, [line for line in notes if line])
    return figure


def _check_arrays(experiment: Experiment, planned: Sequence[Cell], arrays: Arrays) -> None:
    """Raises ConfigError where every panel would be empty, as for records that were collected without their traces."""
    options = experiment.figure or {}
    needed = options["panels"] if options["kind"] == "traces" else KINDS[options["kind"]].arrays
    runs = (record.id for cell in planned for record in cell.done)
    if needed and not any(name in of for of in map(arrays, runs) for name in needed):
        what, remedy = ("a trace", "") if options["kind"] == "traces" else ("kept its arrays", " with run.keep=true")
        raise ConfigError(
            f"{experiment.id}: no run here has {what}, so there is nothing to draw; use the results"
            f" folder of the runs, or make them again{remedy}"
        )


_MANY_PANELS = 12


def save(figure: "Figure", path: Path) -> list[Path]:
    """Writes `path`.png and `path`.pdf, and returns both paths.  Raises StorageError where that is impossible."""
    files = [path.with_name(f"{path.name}.{ending}") for ending in ("png", "pdf")]
    for file in files:
        try:
            write(figure, file)
        except OSError as error:
            raise StorageError(f"{file} cannot be written: {error.strerror or error}; choose another --out") from None
    return files


def write(figure: "Figure", file: "Path | io.BytesIO", format: str | None = None) -> None:
    """Writes one file, in the format of its suffix by default.  It has no date, so equal figures have equal bytes."""
    from gpbench.report.figures import style

    if isinstance(file, Path):
        file.parent.mkdir(parents=True, exist_ok=True)
        format = file.suffix[1:]
    dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with style.context():
        # None is the style's resolution, at which the shaded panels of a large figure would take megabytes
        dpi = 100 if len(figure.axes) > _MANY_PANELS else None
        # Laid out here, as savefig would draw the whole figure once more for it
        if engine := figure.get_layout_engine():
            engine.execute(figure)
            figure.set_layout_engine("none")
        figure.savefig(file, format=format, metadata=dates.get(format or ""), dpi=dpi)


def _seconds(kind: str, planned: Sequence[Cell]) -> list[str]:
    """`seconds_lines` of figures whose axis is seconds; the devices of `scaling` are its other axis."""
    if kind not in ("traces", "scaling"):
        return []
    axis = ("devices", "processes") if kind == "scaling" else ()
    return seconds_lines((record for cell in planned for record in cell.records), axis)


def _provenance(planned: Sequence[Cell]) -> str:
    facts = provenance(record for cell in planned for record in cell.records)
    return "; ".join(f"{name} {', '.join(facts[name])}" for name in ("device", "precision", "jax", "commit"))
