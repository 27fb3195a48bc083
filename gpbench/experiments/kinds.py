"""Kinds of tables and figures: the function of each by its dotted path, and its options.

An experiment names a kind and gives its options, which `gpbench.experiments.layout` checks when the file is read.  The
function is imported when the table or figure is made; its docstring describes the options.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpbench.targets import load_own


@dataclass(frozen=True)
class Kind:
    """A kind of table or figure."""

    path: str  # dotted path of the function that makes it
    required: Mapping[str, str]
    optional: Mapping[str, str] = field(default_factory=dict)  # options that it may have
    format: str = "svg"  # format of a figure on web pages: WebP where a vector image of all points would be too large
    arrays: tuple[str, ...] = ()  # arrays of a run, without one of which the figure shows nothing of it

    @property
    def function(self) -> Callable:
        """The function, imported."""
        return load_own(self.path)


_RANKS, _RANK_SETS = {"label": "method keys", "metrics": "ranking metrics"}, {"sets": "method sets"}

TABLES: Mapping[str, Kind] = {
    "values": Kind(
        "gpbench.analysis.experiment.value_table",
        {"rows": "key or output", "columns": "columns", "metrics": "metrics"},
        {"blocks": "keys", "average": "metric", "printed": "values"},
    ),
    "ranks": Kind("gpbench.analysis.rankings.table", _RANKS, _RANK_SETS),
}
"""Kinds of tables; "values" is the default."""

FIGURES: Mapping[str, Kind] = {
    "traces": Kind(
        "gpbench.report.figures.traces.draw",
        {"panels": "metrics", "colour": "key"},
        {"style": "key", "colours": "any", "dashes": "any", "vertical": "any", "level": "any"},
    ),
    "boundaries": Kind(
        "gpbench.report.figures.predictions.draw_boundaries",
        {"rows": "key", "columns": "key"},
        format="webp",
        arrays=("kept_grid",),
    ),
    "curves": Kind(
        "gpbench.report.figures.predictions.draw_curves",
        {"label": "keys of some"},
        {"reference": "method", "margin": "fraction"},
        arrays=("kept_mean",),
    ),
    "surfaces": Kind(
        "gpbench.report.figures.predictions.draw_surfaces", {"label": "columns"}, format="webp", arrays=("kept_mean",)
    ),
    "effects": Kind(
        "gpbench.report.figures.effects.draw",
        {"label": "columns"},
        {"truth": "truth"},
        format="webp",
        arrays=("kept_effect1_inputs", "kept_effect2_inputs"),
    ),
    "orders": Kind(
        "gpbench.report.figures.scaling.draw_orders",
        {"along": "columns", "colour": "key"},
        {"published": "exponents", "counted": "flag"},
    ),
    "scaling": Kind(
        "gpbench.report.figures.scaling.draw_scaling", {"along": "key", "colour": "key"}, {"colours": "any"}
    ),
    "dots": Kind(
        "gpbench.report.figures.dots.draw",
        {"label": "method keys", "metric": "metric"},
        {"sets": "method sets", "settings": "settings"},
    ),
    "ranks": Kind("gpbench.report.figures.comparisons.draw_ranks", _RANKS, {**_RANK_SETS, "settings": "settings"}),
}
"""Kinds of figures."""
