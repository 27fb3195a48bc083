"""Metrics along training as figures and pages show them.  No Matplotlib."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from gpbench.analysis.statistics import mean_stderr
from gpbench.errors import ConfigError
from gpbench.experiments.status import Cell
from gpbench.records.arrays import share_seconds


@dataclass(frozen=True)
class Curve:
    """A metric along training: mean and standard error over splits at each point, and the seconds of one split."""

    seconds: Float[ndarray, " T"]
    mean: Float[ndarray, " T"]
    stderr: Float[ndarray, " T"]


def curve(cell: Cell, metric: str, arrays: Callable[[str], Mapping[str, ndarray]]) -> Curve | None:
    """The curve of a cell over the splits that did not diverge; None without any.

    A split whose training ended early, by convergence, keeps its last values.  Raises ConfigError: A run has a trace
    without seconds.
    """
    by_id = {record.id: share_seconds(record, arrays(record.id)) for record in cell.finished}
    traces = [trace for trace in by_id.values() if metric in trace and len(trace[metric])]
    if not traces:
        return None
    if timeless := [id for id, trace in by_id.items() if metric in trace and "seconds" not in trace]:
        raise ConfigError(f"the trace of {' '.join(timeless)} has no seconds, against which it is drawn; run it again")
    length = max(len(trace[metric]) for trace in traces)

    def extended(values: ndarray) -> ndarray:
        return np.pad(values, (0, length - len(values)), mode="edge")

    seconds = np.mean([extended(trace["seconds"]) for trace in traces], axis=0)
    points = np.stack([extended(trace[metric]) for trace in traces], axis=1).tolist()
    mean, stderr = zip(*map(mean_stderr, points))
    return Curve(seconds, np.array(mean), np.array([value or 0.0 for value in stderr]))
