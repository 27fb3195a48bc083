"""Kinds of tables and figures: functions, imported at first use, and options (docs/reference/experiments.md)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpbench import targets


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
        return targets.resolve(self.path)


def _figure(function: str, required: Mapping[str, str], optional: Mapping[str, str] | None = None, **more: Any) -> Kind:
    return Kind(f"gpbench.report.figures.{function}", required, optional or {}, **more)


_RANKS, _RANK_SETS = {"label": "method keys", "metrics": "ranking metrics"}, {"sets": "method sets"}
_TRACES = {"style": "key", "colours": "any", "dashes": "any", "vertical": "any", "level": "any"}
_VALUES = {"rows": "key or output", "columns": "columns", "metrics": "metrics"}
_CURVES = {"reference": "method", "margin": "fraction"}
_ORDERS = {"published": "exponents", "counted": "flag"}
_MEAN, _EFFECTS = ("kept_mean",), ("kept_effect1_inputs", "kept_effect2_inputs")

# "values" is the default
TABLES: Mapping[str, Kind] = {
    "values": Kind(
        "gpbench.analysis.experiment.value_table", _VALUES, {"blocks": "keys", "average": "metric", "printed": "values"}
    ),
    "ranks": Kind("gpbench.analysis.rankings.table", _RANKS, _RANK_SETS),
}
FIGURES: Mapping[str, Kind] = {
    "traces": _figure("traces.draw", {"panels": "metrics", "colour": "key"}, _TRACES),
    "boundaries": _figure(
        "predictions.draw_boundaries", {"rows": "key", "columns": "key"}, format="webp", arrays=("kept_grid",)
    ),
    "curves": _figure("predictions.draw_curves", {"label": "keys of some"}, _CURVES, arrays=_MEAN),
    "surfaces": _figure("predictions.draw_surfaces", {"label": "columns"}, format="webp", arrays=_MEAN),
    "effects": _figure(
        "predictions.draw_effects", {"label": "columns"}, {"truth": "truth"}, format="webp", arrays=_EFFECTS
    ),
    "orders": _figure("scaling.draw_orders", {"along": "columns", "colour": "key"}, _ORDERS),
    "scaling": _figure("scaling.draw_scaling", {"along": "key", "colour": "key"}, {"colours": "any"}),
    "dots": _figure("dots.draw", {"label": "method keys", "metric": "metric"}, {**_RANK_SETS, "settings": "settings"}),
    "ranks": _figure("comparisons.draw_ranks", _RANKS, {**_RANK_SETS, "settings": "settings"}),
}
