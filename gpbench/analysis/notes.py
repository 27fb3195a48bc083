"""Lines of text on recorded runs: caveats of a metric's comparison, as footnotes, and provenance.

Provenance is protocol, preset, precision, device, versions and commit.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gpbench.analysis.printing import abridge, counted
from gpbench.analysis.statistics import FOLDS, UNTESTED
from gpbench.papers.published import UNRANKED, Published
from gpbench.records.record import Record

if TYPE_CHECKING:
    from gpbench.analysis.cells import CellRuns

LEAKED = "not held out: this run's test rows were among its training rows, as its configuration requests"
SHIPPED = "some of these runs or all ship with gpbench"
UNCONVERGED = "the optimiser had not converged when training ended, in some of these runs or all"
UNMIXED = "in some of these runs the chains' outputs had not mixed: R-hat above 1.05 or under 100 effective samples"
UNMIXED_WEIGHTS = "in some of these runs the chains had not mixed over the weights: R-hat of the log joint above 1.05"
UNSOLVED = "a linear system was left with a residual above 1 % when training ended, in some of these runs or all"
RISING = "in some of these runs the objective still rose, by over 0.02 nats per row in a tenth of the steps at the end"
NOISELESS = "in some of these runs the noise variance fell to its floor, or below a thousandth of its initial value"
DIVERGENT = "some transitions of the sampler diverged in some of these runs or all"
_IMPORTED = "imported: predictions of another program, scored by our metrics on our splits"
DEGENERATE = "degenerate: in some of these runs or all the bound is below that of a constant prediction"

_WORST_RHAT, _FEWEST_SAMPLES, _STEEPEST, _WORST_RESIDUAL = 1.05, 100, 0.02, 0.01
_CONSTANT = -1.4189
"""Bound of a constant prediction in nats per standardised row: -½ log(2πe)."""


def caveats(cell: "CellRuns", metric: str, published: Published | None) -> list[str]:
    """The footnotes of one metric of a cell, from its records and its published value, each once."""
    first = [line for line in cell.caveats if line in (LEAKED, SHIPPED)]
    lines = [
        *first,
        published.note if published else "",
        UNRANKED.get(cell.dataset, ""),
        *(line for line in cell.caveats if line not in first),
        DEGENERATE if metric.startswith("vlb") and any(map(_is_degenerate, cell.records)) else "",
    ]
    return [line for line in dict.fromkeys(lines) if line]


def run_caveats(records: Sequence[Record]) -> list[str]:
    """The footnotes of runs, whatever the metric."""
    lines = [
        LEAKED if any(record.held_out is False for record in records) else "",
        SHIPPED if any(record.shipped for record in records) else "",
        UNCONVERGED if any(record.converged is False for record in records) else "",
        UNSOLVED if any(map(_is_unsolved, records)) else "",
        RISING if any(map(_is_rising, records)) else "",
        NOISELESS if any({"noise_at_floor", "noise_ratio"} & _diagnostics(r).keys() for r in records) else "",
        UNMIXED if any(map(_is_unmixed, records)) else "",
        UNMIXED_WEIGHTS if any(map(_is_unmixed_over_weights, records)) else "",
        DIVERGENT if any(_diagnostics(record).get("divergences") for record in records) else "",
        imported_note(records),
    ]
    return [line for line in lines if line]


def correction(records: Iterable[Record]) -> tuple[str, str]:
    """The factor of the variance in tests on these records' splits, and its source; `split_notes` names exceptions."""
    return _OF_FOLDS if _are_folds(records) else ("1/n + n_test/n_train", "Nadeau and Bengio 2003")


_OF_FOLDS = ("1/(k r) + n_test/n_train for r repeats of k folds", "Bouckaert and Frank 2004")


def _are_folds(records: Iterable[Record]) -> bool:
    return {record.split_set in FOLDS for record in records} == {True}


def split_notes(records: Iterable[Record], are_told: bool = False) -> list[str]:
    """Lines on tests over folds, and over splits that no test is known for; none for random splits.

    Args:
        records: The records.
        are_told: The `correction` of these records is told elsewhere.
    """
    records = list(records)
    notes = []
    names = _datasets(record for record in records if record.split_set in FOLDS)
    if names and not (are_told and _are_folds(records)):
        notes.append(f"{names}: k-fold; tests correct the variance, times {_OF_FOLDS[0]} ({_OF_FOLDS[1]})")
    for name, reason in UNTESTED.items():
        if names := _datasets(record for record in records if record.split_set == name):
            notes.append(f"{names}: no test: no correction of the variance is known for {name} ({reason})")
    return notes


def _datasets(records: Iterable[Record]) -> str:
    return abridge(sorted({record.dataset for record in records}))


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


def _is_unsolved(record: Record) -> bool:
    """Tests whether a solver of a linear system may have ended too early, if the record does not say so itself."""
    residuals = [_diagnostics(record).get(name) or 0.0 for name in ("residual", "residual_samples")]
    return record.converged is None and max(residuals) > _WORST_RESIDUAL


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


_FACTS = ("protocol", "preset", "precision", "device", "jax", "commit")


def provenance(records: Iterable[Record]) -> dict[str, dict[str, int]]:
    """Counts the runs by protocol, preset, precision, device, version of JAX and commit."""
    counts: dict[str, Counter] = {name: Counter() for name in _FACTS}
    for record in records:
        absent = "imported" if record.imported else "unknown"
        commit = (record.commit or absent)[:12] + (" with changes" if record.dirty else "")
        facts = {"jax": (record.versions or {}).get("jax"), "commit": commit}
        for name in _FACTS:
            value = facts[name] if name in facts else getattr(record, name)
            counts[name][str(value or ("none" if name == "preset" else absent))] += 1
    return {name: dict(counter.most_common()) for name, counter in counts.items()}


def provenance_lines(records: Iterable[Record]) -> list[str]:
    """A line on the properties that the runs share, and one for each property in which they differ."""
    runs = {record.id: record for record in records}
    facts = provenance(runs.values())
    shared = [f"{name} {next(iter(counts))}" for name, counts in facts.items() if len(counts) == 1]
    mixed = [
        f"MIXED {name}: " + ", ".join(f"{value} ({n})" for value, n in counts.items())
        for name, counts in facts.items()
        if len(counts) > 1
    ]
    return [f"{counted(len(runs), 'run')}: " + ", ".join(shared), *mixed]


def seconds_lines(records: Iterable[Record], without: Sequence[str] = ()) -> list[str]:
    """A line on the properties in which the machines of these runs differ, if any.

    Seconds of runs on different devices, processors, numbers of cores or processes, versions of packages, or trained
    together in different numbers, cannot be compared.

    Args:
        records: The records.
        without: Names of properties that are meant to differ.

    Returns:
        One line, or none where the machines are the same.
    """
    machines: dict[str, tuple[dict[str, object], list[str]]] = {}
    for id, machine in {record.id: _machine(record) for record in records}.items():
        machines.setdefault(repr(machine), (machine, []))[1].append(id)
    if len(machines) < 2:
        return []
    counts: dict[str, Counter[str]] = {}
    for name in dict.fromkeys(name for machine, _ in machines.values() for name in machine if name not in without):
        counts[name] = Counter()
        for machine, ids in machines.values():
            counts[name][str(machine.get(name) or "unknown")] += len(ids)
    differing = [
        f"{name} " + ", ".join(f"{value} ({n})" for value, n in sorted(numbers.items()))
        for name, numbers in counts.items()
        if len(numbers) > 1
    ]
    return [f"seconds are not comparable where these differ: {'; '.join(differing)}"] if differing else []


def facts_of(records: Iterable[Record]) -> dict[str, str]:
    """What was run, by name: number of runs, protocol, preset, precision, device, commits, seconds, versions.

    A property in which the runs differ has the number of runs of each value.  Without records there are no facts.
    """
    runs = [*{record.id: record for record in records}.values()]
    if not runs:
        return {}
    facts = {
        name: ", ".join(f"{value} ({n:,})" if len(counts) > 1 else value for value, n in counts.items())
        for name, counts in provenance(runs).items()
        if name != "jax"  # one of the versions
    }
    return {"runs": f"{len(runs):,}", **facts, **_totals(runs)}


def provenance_footer(records: Sequence[Record]) -> list[str]:
    """The lines of `provenance_lines`, then the seconds of all runs and versions of packages."""
    return (
        [*provenance_lines(records), *(f"{name}: {text}" for name, text in _totals(records).items())] if records else []
    )


def _totals(records: Sequence[Record]) -> dict[str, str]:
    """The seconds of all runs, and the versions of their packages."""
    seconds: Counter[str] = Counter()
    versions: dict[str, set[str]] = {}
    for record in records:
        seconds.update({phase: value for phase, value in record.seconds.items() if value})
        for package, version in (record.versions or {}).items():
            versions.setdefault(package, set()).add(str(version))
    totals = ", ".join(f"{phase} {value:,.0f}" for phase, value in seconds.items())
    packages = ", ".join(f"{package} {' and '.join(sorted(numbers))}" for package, numbers in versions.items())
    texts = {"seconds of all runs": f"{totals}; tables show those of train" if totals else "", "versions": packages}
    return {name: text for name, text in texts.items() if text}


def _machine(record: Record) -> dict[str, object]:
    """The properties of the machine on which the seconds of a run depend."""
    host = record.host or {}
    return {
        "device": record.device,
        "processor": host.get("cpu"),
        "cores": host.get("cores"),
        "devices": record.devices or 1,  # older records lack the number: their runs had one device
        "processes": record.processes or 1,
        "runs trained together": record.group or 1,
        **(record.versions or {}),
    }
