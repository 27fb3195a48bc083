"""Where the numbers of recorded runs are from, their splits, kernels and steps; and caveats, as footnotes."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from gpbench import paths, yamls
from gpbench.analysis.grouping import gather
from gpbench.analysis.printing import abridge, counted
from gpbench.analysis.statistics import FOLDS, UNTESTED
from gpbench.papers.published import parts
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
_OF_IMPORTED = "imported: predictions of another program, scored by our metrics on our splits"
DEGENERATE = "degenerate: in at least one run the bound is below that of a constant prediction"

_WORST_RHAT, _FEWEST_SAMPLES, _STEEPEST, _WORST_RESIDUAL = 1.05, 100, 0.02, 0.01
_CONSTANT = -1.4189  # bound of a constant prediction in nats per standardised row: -½ log(2πe)
_IMPORTED = "other programs"  # the name of the seconds of imported runs, which may have stages besides training
_FACTS = ("protocol", "preset", "precision", "device", "jax", "commit")
_OF_FACTS = attrgetter("imported", "protocol", "preset", "precision", "device", "commit", "dirty")


def provenance(records: Iterable[Record]) -> dict[str, dict[str, int]]:
    """Counts the runs by protocol, preset, precision, device, version of JAX and commit."""
    counts: dict[str, Counter] = {name: Counter() for name in _FACTS}
    jax = lambda record: (record.versions or {}).get("jax")
    alike = Counter((*_OF_FACTS(record), jax(record)) for record in records)
    for (imported, protocol, preset, precision, device, commit, dirty, version), n in alike.items():
        absent, by_hand = ("imported", "none") if imported else ("unknown", "by hand")
        commit = (commit or absent)[:12] + (" with changes" if dirty else "")
        for name, value in zip(_FACTS, (protocol, preset or by_hand, precision, device, version, commit)):
            counts[name][str(value or absent)] += n
    return {name: dict(counter.most_common()) for name, counter in counts.items()}


def provenance_lines(records: Iterable[Record]) -> list[str]:
    """A line on where the runs are from; of more than two values of a property it has their number."""
    runs = {record.id: record for record in records}
    facts = provenance(runs.values()).items()
    texts = [f"{name} {_with_counts(n)}" if len(n) <= 2 else f"{len(n)} values of {name}" for name, n in facts]
    return [f"{counted(len(runs), 'run')}: {'; '.join(texts)}"]


def _with_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{value} ({n:,})" if len(counts) > 1 else value for value, n in counts.items())


def seconds_lines(records: Iterable[Record], without: Sequence[str] = ()) -> list[str]:
    """A line on the properties in which the machines of these runs differ, so that seconds are not comparable."""
    machines = [*{record.id: _machine(record) for record in records}.values()]
    differing = []
    for name in dict.fromkeys(name for machine in machines for name in machine if name not in without):
        counts = Counter(str(machine.get(name) or "unknown") for machine in machines)
        if len(counts) > 1:
            differing.append(f"{name} " + ", ".join(f"{value} ({n})" for value, n in sorted(counts.items())))
    return [f"seconds are not comparable where these differ: {'; '.join(differing)}"] if differing else []


def facts_of(records: Iterable[Record]) -> dict[str, str]:
    """Facts of the runs by name, where they differ with the number of runs of each value; seeds other than 0."""
    runs = [*{record.id: record for record in records}.values()]
    if not runs:
        return {}
    facts = {name: _with_counts(counts) for name, counts in provenance(runs).items() if name != "jax"}  # a version
    seeds = Counter(record.seed for record in runs)
    seed_fact = {} if {*seeds} == {0} else {"seed": ", ".join(f"{seed} ({n:,})" for seed, n in sorted(seeds.items()))}
    return {"runs": f"{len(runs):,}", **seed_fact, **facts, **_totals(runs)}


def _totals(records: Sequence[Record]) -> dict[str, str]:
    """The seconds of all runs, and the versions of their packages."""
    seconds: dict[str, float] = {}
    several = {id(record.versions): record.versions or {} for record in records}  # many records share theirs
    versions = gather((name, str(version)) for each in several.values() for name, version in each.items())
    for record in records:
        for phase, value in record.seconds.items():
            if value:
                name = _IMPORTED if record.imported else phase
                seconds[name] = seconds.get(name, 0.0) + value
    totals = ", ".join(f"{phase} {value:,.0f}" for phase, value in seconds.items())
    packages = ", ".join(f"{package} {' and '.join(sorted({*numbers}))}" for package, numbers in versions.items())
    columns = f"train and {_IMPORTED}" if _IMPORTED in seconds else "train"
    texts = {"seconds of all runs": f"{totals}; tables show those of {columns}" if totals else "", "versions": packages}
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


_FEW = 3  # largest number of values that are listed; of more the first and the last are


def run_facts(records: Iterable[Record], settings: str = "") -> dict[str, str]:
    """The splits, kernels, settings and steps of these runs, by name; without those that no record has."""
    runs = [*records]
    files = paths.yaml_files("method")

    def kernels_of(group: Sequence[Record]) -> str:
        file = None if any(record.imported for record in group) else files.get(group[0].method)
        default = str(yamls.read(file).get("kernel") or "") if file else ""
        kernels = (parts(setting).get("kernel") or default for setting in dict.fromkeys(r.setting for r in group))
        return " or ".join(dict.fromkeys(filter(None, map(str, kernels))))

    def steps_of(group: Sequence[Record]) -> str:
        texts = [f"{number:,}" for number in sorted({r.steps for r in group if r.steps and r.steps > 1})]
        return " or ".join(texts) if len(texts) <= _FEW else f"{texts[0]} to {texts[-1]}"

    kernels = _by_value(runs, lambda r: r.method, kernels_of)
    steps = _by_value(runs, lambda r: r.method, steps_of)
    facts = {
        "splits": _by_value(runs, lambda r: r.dataset, _splits),
        "kernel": f"{kernels}; a lengthscale for each input unless isotropic" if kernels else "",
        "settings": settings,
        "budget": f"steps: {steps}" if steps else "",
    }
    return {name: text for name, text in facts.items() if text}


def _by_value(
    records: Sequence[Record], name: Callable[[Record], str], value: Callable[[Sequence[Record]], str]
) -> str:
    """The values of groups of records, each once, with the names of its groups where there are several values."""
    groups = gather((name(record), record) for record in records)
    names = gather((text, group) for group in sorted(groups) if (text := value(groups[group])))
    if len(names) == 1 and len(groups) == len(*names.values()):
        return next(iter(names))
    return "; ".join(f"{', '.join(members)} {text}" for text, members in names.items())


def _splits(records: Sequence[Record]) -> str:
    sets = gather((record.split_set or "", record.split) for record in records)
    texts = []
    for name, numbers in sorted((name, {*splits}) for name, splits in sets.items()):
        first, last = min(numbers), max(numbers)
        is_range = len(numbers) >= _FEW and last - first == len(numbers) - 1
        span = f"{first} to {last}" if is_range else ", ".join(map(str, sorted(numbers)))
        texts.append(f"{name}, {span}" if name else span)
    return "; ".join(texts)


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
    return f"{_OF_IMPORTED}: {', '.join(sources)}" if sources else ""


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
    """Tests whether a run's bound, in the units of the targets, is below that of a constant prediction."""
    names = ("vlb_per_row", "test_ll", "ll_std")
    values = [value for name in names if (value := record.metrics.get(name)) is not None]
    if len(values) < len(names):
        return False
    bound, original, standardised = values
    return bound + standardised - original < _CONSTANT
