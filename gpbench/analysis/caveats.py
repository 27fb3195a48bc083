"""Caveats of a metric's comparison with other methods and with the paper, as footnotes."""

import math
from collections.abc import Iterable, Mapping, Sequence

from gpbench.papers.published import UNRANKED, Published
from gpbench.records.record import Record

LEAKED = "not held out: this run's test rows were among its training rows, as its configuration requests"
UNCONVERGED = "the optimiser had not converged when training ended, in some of these runs or all"
UNMIXED = "in some of these runs the chains' outputs had not mixed: R-hat above 1.05 or under 100 effective samples"
UNMIXED_WEIGHTS = "in some of these runs the chains had not mixed over the weights: R-hat of the log joint above 1.05"
RISING = "in some of these runs the objective still rose, by over 0.02 nats per row in a tenth of the steps at the end"
DIVERGENT = "some transitions of the sampler diverged in some of these runs or all"
_IMPORTED = "imported: predictions of another program, scored by our metrics on our splits"
DEGENERATE = "degenerate: in some of these runs or all the bound is below that of a constant prediction"

_WORST_RHAT, _FEWEST_SAMPLES, _STEEPEST = 1.05, 100, 0.02
_CONSTANT = -1.4189
"""Bound of a constant prediction in nats per standardised row: -½ log(2πe)."""


def caveats(dataset: str, metric: str, records: Sequence[Record], published: Published | None) -> list[str]:
    """The footnotes of one metric of a cell, from its records and its published value, each once."""
    lines = [
        LEAKED if any(record.held_out is False for record in records) else "",
        published.note if published else "",
        UNRANKED.get(dataset, ""),
        UNCONVERGED if any(record.converged is False for record in records) else "",
        RISING if any(map(_is_rising, records)) else "",
        UNMIXED if any(map(_is_unmixed, records)) else "",
        UNMIXED_WEIGHTS if any(map(_is_unmixed_over_weights, records)) else "",
        DIVERGENT if any(_diagnostics(record).get("divergences") for record in records) else "",
        imported_note(records),
        DEGENERATE if metric.startswith("vlb") and any(map(_is_degenerate, records)) else "",
    ]
    return [line for line in dict.fromkeys(lines) if line]


def imported_note(records: Iterable[Record]) -> str:
    """The methods whose predictions are another program's, with their files; "" without any."""
    sources = {
        f"{record.method} ({record.source}, SHA-256 {(record.source_checksum or '')[:12]})": None
        for record in records
        if record.imported
    }
    return f"{_IMPORTED}: {', '.join(sources)}" if sources else ""


def _diagnostics(record: Record) -> Mapping:
    """The diagnostics of a sampler's chains; {} for other methods."""
    return record.diagnostics or {}


def _is_rising(record: Record) -> bool:
    """Tests whether training may have ended too early; chains are tested by R-hat instead."""
    diagnostics = _diagnostics(record)
    return "rhat" not in diagnostics and (diagnostics.get("slope") or 0.0) > _STEEPEST


def _is_unmixed(record: Record) -> bool:
    """Tests whether a sampler's chains differ in outputs (Vehtari et al. 2021), or have too few samples to decide."""
    diagnostics = _diagnostics(record)
    if "rhat" not in diagnostics:
        return False
    # Outputs where they are recorded: the weights of a network need not mix, since layers can exchange factors.
    rhat, ess = (diagnostics.get(f"{name}_outputs", diagnostics.get(name)) for name in ("rhat", "ess"))
    return rhat is None or rhat > _WORST_RHAT or ess is None or ess < _FEWEST_SAMPLES


def _is_unmixed_over_weights(record: Record) -> bool:
    """Tests whether the chains of a network differ in more than its outputs."""
    diagnostics = _diagnostics(record)
    return "rhat_outputs" in diagnostics and (diagnostics.get("rhat") or math.inf) > _WORST_RHAT


def _is_degenerate(record: Record) -> bool:
    """Tests whether a run's bound is below that of a constant prediction.

    The difference of the two log-likelihoods is the logarithm of the scale of the targets.
    """
    names = ("vlb_per_row", "test_ll", "ll_std")
    values = [value for name in names if (value := record.metrics.get(name)) is not None]
    if len(values) < len(names):
        return False
    bound, original, standardised = values
    return bound + standardised - original < _CONSTANT
