"""The kinds of pictures of one run: which suit it, what the others need, and the pictures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.errors import ConfigError, require_known
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.report.figures import checks, predictions, runs, style


@dataclass(frozen=True)
class RunContent:
    """A run with what pictures are drawn from."""

    record: Record  # record of the run
    arrays: Mapping[str, ndarray]  # its trace, and the arrays that it kept (`run.keep`)
    predictions: Mapping[str, ndarray]  # predictions of its test rows by column; {} without any
    columns: Sequence[str] = ()  # names of the inputs; () where they are not known
    scaler: str = "standardise"  # name of the scaler of the inputs

    @classmethod
    def read(cls, store: Store, record: Record) -> "RunContent":
        """The content of a run in a store."""
        config = store.config(record.id)
        columns = config.get("dataset", {}).get("columns") or ()
        scaler = config.get("protocol", {}).get("inputs", cls.scaler)
        return cls(record, store.trace(record.id), store.predictions(record.id), columns, scaler)


class _Kind(NamedTuple):
    """A kind of picture: whether it suits a run, its drawing, and what it needs."""

    suits: Callable[[RunContent], Any]
    draw: Callable[[RunContent], style.Picture]
    needs: str


def kinds(content: RunContent) -> dict[str, str]:
    """The needs of each kind of picture that the run lacks: "" for the kinds that suit the run."""
    return {name: "" if kind.suits(content) else kind.needs for name, kind in _KINDS.items()}


def suitable_kinds(content: RunContent) -> list[str]:
    """The kinds of pictures that suit the run.  Raises ConfigError: no kind suits it."""
    names = [name for name, lack in kinds(content).items() if not lack]
    if not names:
        lack = f"run {content.record.id}, without trace and predictions, as in collected records"
        mend = "use the results folder of the run, or run it again with run.keep=true run.again=true"
        raise ConfigError(f"there is nothing to draw of {lack}; {mend}")
    return names


def default(content: RunContent) -> str:
    """The kind that is drawn where none is named: what the run kept, or its trace, or the first that suits."""
    first, *others = suitable_kinds(content)
    return "learning" if first == "predictions" and not _has_fit(content) and "learning" in others else first


def check_kind(kind: str) -> None:
    """Raises ConfigError for a kind of picture that there is not."""
    require_known(kind, _KINDS, f"no kind of picture {kind!r}")


@style.context()
def draw_kind(content: RunContent, kind: str) -> Figure:
    """Draws a picture of a run.  Raises ConfigError: no such kind, or the run lacks what it needs."""
    check_kind(kind)
    if lack := kinds(content)[kind]:
        raise ConfigError(f"run {content.record.id} has no picture of the kind {kind}, which needs {lack}")
    figure = _KINDS[kind].draw(content)
    record = content.record
    name = ", ".join(filter(None, [record.method, record.setting, f"protocol {record.protocol}"]))
    notes = [*figure.notes, f"run {record.id}"]
    style.caption(figure, f"{record.dataset}, split {record.split}: {name}", notes)
    figure.notes = ()
    return figure


def _has_fit(content: RunContent) -> bool:
    return "kept_grid" in content.arrays and "kept_shares" not in content.arrays


def _draw_units(content: RunContent) -> style.Picture:
    """Draws the predictive mean, and the mean of each hidden unit, on the grid of the run's inputs."""
    run, hidden = content.arrays, content.arrays["kept_hidden"]
    figure = style.figure(2.3 * (1 + hidden.shape[1]) + 0.3, 2.5)
    axes = np.atleast_1d(figure.subplots(1, 1 + hidden.shape[1]))
    values = [run.get("kept_mean", np.exp(run["kept_log_probs"][:, 1]) if "kept_log_probs" in run else None), *hidden.T]
    names = ["prediction", *(f"hidden unit {unit}" for unit in range(1, len(axes)))]
    for axis, name, value in zip(axes, names, values):
        axis.set_title(name, fontsize=9)
        if run["kept_grid"].shape[1] == 2:
            style.image(axis)
            predictions.surface(axis, run, value)
        else:
            axis.plot(run["kept_grid"][:, 0], value, color=style.PALETTE["blue"])
            rows = run["kept_X"][:, 0]
            axis.set_xlim(rows.min(), rows.max())
    return figure


_KEEP = "run.keep=true (run.again=true where it is recorded)"
_PREDICTED = "predictions of test rows: run.predictions=true, and its own results folder"
_KINDS: Mapping[str, _Kind] = {  # by name, in the order in which they are offered
    "effects": _Kind(
        lambda run: "kept_shares" in run.arrays,
        lambda run: runs.draw_effects(run.record, run.arrays, run.columns),
        f"method=gam and {_KEEP}",
    ),
    "predictions": _Kind(
        lambda run: _has_fit(run) or {"mean", "variance"} <= {*run.predictions},
        lambda r: runs.draw_fit(r.record, r.arrays) if _has_fit(r) else checks.draw_intervals(r.predictions),
        f"data with one or two inputs and {_KEEP}, or of regression {_PREDICTED}",
    ),
    "units": _Kind(
        lambda run: "kept_hidden" in run.arrays,
        _draw_units,
        f"a deep GP with hidden units, data with one or two inputs, and {_KEEP}",
    ),
    "learning": _Kind(
        lambda run: runs.traced_metrics([run.arrays]),
        lambda run: runs.draw_learning(run.record, run.arrays),
        "a trace: its own results folder",
    ),
    "calibration": _Kind(lambda run: run.predictions, lambda run: checks.draw_calibration(run.predictions), _PREDICTED),
    "residuals": _Kind(
        lambda run: {"mean", "variance"} <= {*run.predictions},
        lambda run: checks.draw_residuals(run.predictions),
        f"regression, and {_PREDICTED}",
    ),
    "relevance": _Kind(
        lambda run: "kept_lengthscales" in run.arrays,
        lambda run: checks.draw_relevance(run.arrays["kept_lengthscales"], run.columns, run.scaler),
        f"a method with a lengthscale for each of several inputs, and {_KEEP}",
    ),
}
