"""What a collection has of a run's trace.npz: thinned traces, and what pictures need of the arrays that a run kept."""

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import ndarray

POINTS = 48
"""Traces of no more points are kept whole."""
_GROWTH = 1.3
"""The ratio of the steps of a thinned trace.  Steps do not depend on its length, so that those of splits agree."""
KEPT = "kept_"
"""How the names of arrays begin that `run.keep=true` keeps."""


def thin(arrays: "Mapping[str, ndarray]", *, kept: bool) -> "dict[str, ndarray]":
    """Each trace at steps of a geometric progression, as they show on logarithmic axes, and its last one.

    Numbers are of single precision.  With `kept` also the arrays that the run kept, whole.
    """
    import numpy as np

    thinned = {}
    for name, values in arrays.items():
        if name.startswith(KEPT):
            chosen = values if kept else None
        else:
            chosen = values[_points(len(values))] if values.ndim else values
        if chosen is not None:
            thinned[name] = chosen.astype(np.float32) if chosen.dtype == np.float64 else chosen
    return thinned


def pack(arrays: "Mapping[str, ndarray]") -> bytes | None:
    """The arrays as the content of an .npz file, which the file around it compresses; None without any."""
    import numpy as np

    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue() if arrays else None


def unpack(content: bytes) -> "dict[str, ndarray]":
    """The arrays of an .npz file.  Raises ValueError where it is damaged."""
    import numpy as np

    from gpbench.damage import DAMAGED

    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return dict(arrays)
    except DAMAGED as error:
        raise ValueError(f"its arrays cannot be read ({' '.join(str(error).split())[:100]})") from None


def _points(n: int) -> "ndarray":
    import numpy as np

    if n <= POINTS:
        return np.arange(n)
    steps = (_GROWTH ** np.arange(np.log(n) / np.log(_GROWTH))).astype(int) - 1
    return np.unique([*steps, n - 1])
