"""Lines of text on recorded runs: caveats of a metric's comparison, as footnotes, and how it is tested."""

import math
from collections.abc import Iterable, Sequence

from gpbench.analysis.grouping import gather
from gpbench.analysis.printing import abridge
from gpbench.analysis.statistics import FOLDS, UNTESTED
from gpbench.records.record import Record

LEAKED = "not held out: this run's test rows were among its training rows, as its configuration requests"
SHIPPED = "shipped with gpbench: at least one run"
UNCONVERGED = "the optimiser had not converged when training ended, in at least one run"
UNMIXED = "in at least one run the chains' outputs had not mixed: R-hat above 1.05 or under 100 effective samples"
UNMIXED_WEIGHTS = "in at least one run the chains had not mixed over the weights: R-hat of the log joint above 1.05"
UNSOLVED = "a linear system was left with a residual above 1 % when training ended, in at least one run"
RISING = "in at least one run the objective still rose, by over 0.02 nats per row in a tenth of the steps at the end"
NOISELESS = "in at least one run the noise variance fell to its floor, or below a thousandth of its initial value"
DIVERGENT = "some transitions of the sampler diverged in at least one run"
_IMPORTED = "imported: predictions of another program, scored by our metrics on our splits"
DEGENERATE = "degenerate: in at least one run the bound is below that of a constant prediction"

_WORST_RHAT, _FEWEST_SAMPLES, _STEEPEST, _WORST_RESIDUAL = 1.05, 100, 0.02, 0.01
_CONSTANT = -1.4189  # bound of a constant prediction in nats per standardised row: -½ log(2πe)


def run_caveats(records: Sequence[Record]) -> list[str]:
    """Lines on runs, whatever the metric."""
    doubts = [*map(_doubts, records)]
    lines = [line for line in doubts[0] if any(own[line] for own in doubts)] if doubts else []
    return [*lines, *filter(None, [imported_note(records)])]


def correction(records: Iterable[Record]) -> tuple[str, str]:
    """The factor of the variance in tests on these records' splits, and its source; `split_notes` names exceptions."""
    of_folds = {record.split_set in FOLDS for record in records} == {True}
    return _OF_FOLDS if of_folds else ("1/n + n_test/n_train", "Nadeau and Bengio 2003")


_OF_FOLDS = ("1/(k r) + n_test/n_train for r repeats of k folds", "Bouckaert and Frank 2004")


def split_notes(records: Iterable[Record], has_correction: bool = False) -> list[str]:
    """Lines on tests over folds, and over splits that no test is known for; none for random splits."""
    records = list(records)
    notes = []
    names = _datasets(record for record in records if record.split_set in FOLDS)
    if names and not (has_correction and correction(records) is _OF_FOLDS):
        notes.append(f"{names}: k-fold; tests correct the variance, times {_OF_FOLDS[0]} ({_OF_FOLDS[1]})")
    for name, reason in UNTESTED.items():
        if names := _datasets(record for record in records if record.split_set == name):
            notes.append(f"{names}: no test: no correction of the variance is known for {name} ({reason})")
    return notes


def _datasets(records: Iterable[Record]) -> str:
    return abridge(sorted({record.dataset for record in records}))


def imported_note(records: Iterable[Record]) -> str:
    """The methods whose predictions are another program's, with their file, or the number of files; "" without any."""
    file = lambda record: f"{record.source}, SHA-256 {(record.source_checksum or '')[:12]}"
    files = gather((record.method, file(record)) for record in records if record.imported)
    words = lambda some: some[0] if len({*some}) == 1 else f"{len({*some})} files"
    sources = [f"{name} ({words(some)})" for name, some in files.items()]
    return f"{_IMPORTED}: {', '.join(sources)}" if sources else ""


def _doubts(record: Record) -> dict[str, bool]:
    """The caveats in their order, and whether a run has each, by the diagnostics of its solver or of its chains."""
    own = record.diagnostics or {}
    residual = max(own.get(name) or 0.0 for name in ("residual", "residual_samples"))
    # Outputs where they are recorded: the weights of a network need not mix, since layers can exchange factors.
    rhat, ess = (own.get(f"{name}_outputs", own.get(name)) for name in ("rhat", "ess"))
    # Vehtari et al. 2021
    is_unmixed = rhat is None or rhat > _WORST_RHAT or ess is None or ess < _FEWEST_SAMPLES
    return {
        LEAKED: record.held_out is False,
        SHIPPED: bool(record.shipped),
        UNCONVERGED: record.converged is False,
        UNSOLVED: record.converged is None and residual > _WORST_RESIDUAL,
        RISING: "rhat" not in own and (own.get("slope") or 0.0) > _STEEPEST,
        NOISELESS: bool({"noise_at_floor", "noise_ratio"} & own.keys()),
        UNMIXED: "rhat" in own and is_unmixed,
        UNMIXED_WEIGHTS: "rhat_outputs" in own and (own.get("rhat") or math.inf) > _WORST_RHAT,
        DIVERGENT: bool(own.get("divergences")),
    }


def is_degenerate(record: Record) -> bool:
    """Tests whether a run's bound is below that of a constant prediction.  The difference of the two log-likelihoods is
    the logarithm of the scale of the targets.
    """
    names = ("vlb_per_row", "test_ll", "ll_std")
    values = [value for name in names if (value := record.metrics.get(name)) is not None]
    if len(values) < len(names):
        return False
    bound, original, standardised = values
    return bound + standardised - original < _CONSTANT
