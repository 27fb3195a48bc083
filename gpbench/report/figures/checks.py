"""Pictures of a run's test predictions: with intervals, calibration, residuals; its relevances of inputs."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from numpy import ndarray
from scipy.stats import norm

from gpbench.records.arrays import log_probs
from gpbench.report.figures import style

_BLUE, _RED, _GREY = (style.PALETTE[name] for name in ("blue", "vermillion", "grey"))
_BINS, _Z95 = 10, 1.96
_MAX_POINTS = 400  # largest number of test rows that are drawn with their intervals: of more, evenly spaced ones
_MAX_INPUTS = 30  # largest number of inputs that are drawn: the most relevant ones
_NORMAL_GAP = 0.02  # mean difference of log densities, in nats, up to which predictive distributions count as normal
# units of lengthscales by the scaler of the inputs; any other leaves the original ones
_SCALED = {"standardise": "of standardised inputs", "unit_interval": "of inputs scaled to [0, 1]"}

Predictions = Mapping[str, ndarray]  # predictions of the test rows by column (`gpbench.records.arrays`)


def draw_intervals(predictions: Predictions) -> style.Picture:
    """Draws predictive means with 95 % intervals, in the order of the means, and the targets of these rows."""
    order = np.argsort(predictions["mean"], kind="stable")
    order = order[np.unique(np.linspace(0, len(order) - 1, _MAX_POINTS).astype(int))]
    y, mean = predictions["target"][order], predictions["mean"][order]
    low, high = (end[order] for end in _interval(predictions))
    inside = (low <= y) & (y <= high)
    figure = style.figure(5.6, 3.2)
    axis, x = figure.subplots(), np.arange(len(order))
    axis.fill_between(x, low, high, color=_BLUE, alpha=0.2, linewidth=0, step="mid")
    axis.plot(x, mean, color=_BLUE, label="mean and 95 % interval")
    for rows, colour, label in ((inside, _GREY, "target"), (~inside, _RED, "target outside")):
        axis.scatter(x[rows], y[rows], s=7, color=colour, linewidths=0, label=f"{label} ({rows.sum()})", zorder=3)
    axis.set(xlabel="test rows, in the order of their predictive means", ylabel="target")
    axis.legend(loc="upper left")
    figure.notes = [] if "low95" in predictions else _normal_notes(predictions)
    return figure


def _interval(predictions: Predictions) -> tuple[ndarray, ndarray]:
    """The ends of the 95 % intervals; normal ones, where a file of an earlier version has no others."""
    if "low95" in predictions:
        return predictions["low95"], predictions["high95"]
    reach = _Z95 * np.sqrt(predictions["variance"])
    return predictions["mean"] - reach, predictions["mean"] + reach


def draw_calibration(predictions: Predictions) -> style.Picture:
    """Draws a reliability diagram of classes; of regression the PIT histogram, and coverage of central intervals."""
    return _reliability(predictions) if "log_prob_0" in predictions else _pit(predictions)


def reliability(predictions: Predictions) -> tuple[Float[ndarray, " B"], Float[ndarray, " B"], Int[ndarray, " B"]]:
    """Mean probability of a class, of two the second, its share, and the rows, of every bin that has test rows."""
    probabilities = np.exp(log_probs(predictions))
    if probabilities.shape[1] == 2:
        confidence, is_right = probabilities[:, 1], predictions["target"] > 0
    else:
        confidence = probabilities.max(axis=1)
        is_right = probabilities.argmax(axis=1) == predictions["target"]
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    counts, total, right = (np.bincount(bins, weights, _BINS) for weights in (None, confidence, is_right))
    some = counts > 0
    return total[some] / counts[some], right[some] / counts[some], counts[some]


def _reliability(predictions: Predictions) -> style.Picture:
    confidence, share, counts = reliability(predictions)
    error = np.sqrt(share * (1 - share) / counts)
    figure = style.figure(3.6, 3.9)
    axis, below = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1])
    _diagonal(axis)
    axis.errorbar(confidence, share, yerr=error, fmt="o-", color=_BLUE, markersize=4, elinewidth=1.2)
    two = "log_prob_2" not in predictions
    axis.set(xlim=(0, 1), ylim=(-0.02, 1.02), ylabel="share of the class" if two else "share of right predictions")
    below.bar(confidence, counts, width=0.06, color=_BLUE, alpha=0.6)
    below.set(xlabel="probability of the second class" if two else "probability of the predicted class", ylabel="rows")
    figure.notes = [f"Test rows in {_BINS} bins of equal width; bars: ± one standard error of the share in a bin."]
    return figure


def _pit(predictions: Predictions) -> style.Picture:
    values = _transforms(predictions)
    figure = style.figure(6.4, 3.0)
    first, second = figure.subplots(1, 2)
    counts, edges = np.histogram(values, _BINS, (0, 1))
    density = counts * _BINS / len(values)
    low, high = 1 + np.array([-1, 1]) * _Z95 * np.sqrt((_BINS - 1) / len(values))
    first.axhspan(low, high, color=_GREY, alpha=0.15, linewidth=0)
    first.bar(edges[:-1], density, width=1 / _BINS, align="edge", color=_BLUE, alpha=0.7, edgecolor="white")
    first.axhline(1, color="black", linewidth=0.8, linestyle="dashed")
    first.set(xlim=(0, 1), xlabel="PIT", ylabel="density")
    levels = np.linspace(0, 1, 101)
    coverage = np.searchsorted(np.sort(np.abs(2 * values - 1)), levels, side="right") / len(values)
    _diagonal(second)
    second.plot(levels, coverage, color=_BLUE)
    second.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability of the central interval", ylabel="share of targets inside")
    note = "Grey: 95 % of the bars of calibrated predictions of as many independent rows."
    figure.notes = [note, *([] if "cdf" in predictions else _normal_notes(predictions))]
    return figure


def _transforms(predictions: Predictions) -> Float[ndarray, " t"]:
    """Probability integral transforms; of counts, samples and quantiles at random within their steps."""
    if "cdf" not in predictions:
        return norm.cdf(_standardised(predictions))
    cdf = predictions["cdf"]
    below = predictions.get("below", cdf)
    return below + np.random.default_rng(0).uniform(size=len(cdf)) * (cdf - below)


def draw_residuals(predictions: Predictions) -> style.Picture:
    """Draws residuals in predictive standard deviations, against predictive means and against normal quantiles."""
    z = _standardised(predictions)
    figure = style.figure(6.4, 3.0)
    first, second = figure.subplots(1, 2)
    for level in (-_Z95, 0, _Z95):
        first.axhline(level, color="black", linewidth=0.8, linestyle="dashed" if level else "solid")
    first.scatter(predictions["mean"], z, s=6, color=_BLUE, alpha=0.6, linewidths=0)
    first.set(xlabel="predictive mean", ylabel="standardised residual")
    quantiles = norm.ppf((np.arange(len(z)) + 0.5) / len(z))
    second.axline((0, 0), slope=1, color="black", linewidth=0.8, linestyle="dashed")
    second.scatter(quantiles, np.sort(z), s=6, color=_BLUE, linewidths=0)
    second.set(xlabel="normal quantiles", ylabel="sorted residuals")
    figure.notes = ["Dashed on the left: ± 1.96.", *_normal_notes(predictions)]
    return figure


def draw_relevance(
    lengthscales: Float[ndarray, " D"], columns: Sequence[str] = (), scaler: str = "standardise"
) -> style.Picture:
    """Draws 1 / lengthscale of every input, most relevant first."""
    order = np.argsort(lengthscales, kind="stable")[:_MAX_INPUTS]
    names = [columns[d] if len(columns) == len(lengthscales) else f"input {d}" for d in order]
    figure = style.figure(4.8, 0.9 + 0.21 * len(order))
    axis = figure.subplots()
    axis.barh(range(len(order)), 1 / lengthscales[order], height=0.7, color=_BLUE)
    style.rows(axis, names, fontsize=8)
    axis.grid(False, axis="y")
    axis.set_xlabel(f"1 / lengthscale, {_SCALED.get(scaler, 'in original units')}")
    if len(order) < len(lengthscales):
        figure.notes = [f"The {len(order)} most relevant of {len(lengthscales)} inputs."]
    return figure


def _standardised(predictions: Predictions) -> Float[ndarray, " t"]:
    return (predictions["target"] - predictions["mean"]) / np.sqrt(predictions["variance"])


def _normal_notes(predictions: Predictions) -> list[str]:
    """A note where the predictive distributions are not normal, as log probabilities show."""
    if "log_prob" not in predictions:
        return []
    density = norm.logpdf(predictions["target"], predictions["mean"], np.sqrt(predictions["variance"]))
    if np.mean(np.abs(density - predictions["log_prob"])) <= _NORMAL_GAP:
        return []
    return ["The predictive distributions are not normal; drawn are normal ones with their means and variances."]


def _diagonal(axis: Axes) -> None:
    axis.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle="dashed")
