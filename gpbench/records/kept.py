"""The arrays that `run.keep=true` keeps, of which pictures are drawn: names, axes, and a check of those of a file."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import ndarray

PREFIX = "kept_"  # prefix of their names in a trace

_OF_EFFECTS = {"inputs": "E{0} {0}", "grid": "g{0} {0}", "mean": "E{0} g{0}", "std": "E{0} g{0}", "joint": "E{0}"}
_AXES = {
    **{"X": "n D", "y": "n", "X_shift": "D", "X_scale": "D", "y_mean": "", "y_std": ""},
    **{"grid": "G D", "mean": "G", "var": "G", "log_probs": "G C", "hidden": "G H"},
    **{"lengthscales": "D", "inducing": "M D", "covariance_inducing": "K D", "shares": "S components"},
    **{f"effect{size}_{name}": axes.format(size) for size in (1, 2) for name, axes in _OF_EFFECTS.items()},
    **{"effect1_place": "E1", "effect2_place": "E2"},
}
"""The axes of each array: training rows n, inputs D, points of the grid G, classes C, hidden units H, inducing points M
and K, samples S; of effects of one and of two inputs their number E and the points g of their grid."""

_NEEDS = {
    "grid": ("X", "y"),
    "X": ("y", "X_shift", "X_scale", "y_mean", "y_std"),
    "mean": ("grid", "var"),
    "var": ("mean",),
    "log_probs": ("grid",),
    "hidden": ("grid",),
    "shares": ("X",),
    **{
        f"effect{size}_inputs": ("X", "shares", *(f"effect{size}_{name}" for name in ("grid", "mean", "std", "place")))
        for size in (1, 2)
    },
}
"""The arrays without which an array cannot be drawn."""

_GRIDS = {"G": "D", "g2": "2"}
"""Axes of the points of grids, by the axis of their inputs: with two inputs the number of points is a square."""


def faults(arrays: "Mapping[str, ndarray]") -> Iterator[str]:
    """Faults of kept arrays, but for those of other names, which a user's method keeps and which may have any axes."""
    import numpy as np

    by_name = {name.removeprefix(PREFIX): values for name, values in arrays.items() if name.startswith(PREFIX)}
    sizes = {"1": 1, "2": 2}
    for name, values in by_name.items():
        axes = _AXES[name].split() if name in _AXES else ()
        if name in _AXES and values.ndim != len(axes):
            yield f"the array {name} has {values.ndim} axes, not {len(axes)}"
        for axis, size in zip(axes, values.shape):
            if size < 1 or sizes.setdefault(axis, size) != size:
                yield f"the array {name} has another size than those beside it"
        if absent := [other for other in _NEEDS.get(name, ()) if other not in by_name]:
            yield f"the array {name} is there without {absent[0]}"
        # inducing points that are not drawn are NaN, and a probability may be 0
        is_drawn = np.isfinite(values) | ((name == "log_probs") & (values < 0))
        if name in _AXES and not name.endswith("inducing") and not is_drawn.all():
            yield f"the array {name} is not finite"
    if "grid" in by_name and not {"mean", "log_probs"} & by_name.keys():
        yield "the array grid is there without predictions"
    for points, inputs in _GRIDS.items():
        if points in sizes and sizes.get(inputs) == 2 and round(sizes[points] ** 0.5) ** 2 != sizes[points]:
            yield "a grid of two inputs is not square"
    for size in (1, 2):
        for name, limit in ((f"effect{size}_inputs", sizes.get("D")), (f"effect{size}_place", sizes.get("components"))):
            if name in by_name and not ((by_name[name] >= 0) & (by_name[name] < (limit or 0))).all():
                yield f"the array {name} has numbers out of range"
