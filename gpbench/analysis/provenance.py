"""Where the numbers of recorded runs are from: protocol, preset, precision, device, versions, commit, machine."""

from collections import Counter
from collections.abc import Iterable, Sequence

from gpbench.analysis.printing import counted
from gpbench.records.record import Record

_IMPORTED = "other programs"
"""The name of the seconds of imported runs, which may have stages besides training."""

_FACTS = ("protocol", "preset", "precision", "device", "jax", "commit")


def provenance(records: Iterable[Record]) -> dict[str, dict[str, int]]:
    """Counts the runs by protocol, preset, precision, device, version of JAX and commit."""
    counts: dict[str, Counter] = {name: Counter() for name in _FACTS}
    for record in records:
        absent = "imported" if record.imported else "unknown"
        by_hand = "none" if record.imported else "by hand"
        commit = (record.commit or absent)[:12] + (" with changes" if record.dirty else "")
        facts = {"jax": (record.versions or {}).get("jax"), "commit": commit}
        for name in _FACTS:
            value = facts[name] if name in facts else getattr(record, name)
            counts[name][str(value or (by_hand if name == "preset" else absent))] += 1
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
    together in different numbers, cannot be compared.  Returns one line, or none where the machines are the same.
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

    A property in which the runs differ has the number of runs of each value.  Seeds are named where some are not 0.
    Without records there are no facts.
    """
    runs = [*{record.id: record for record in records}.values()]
    if not runs:
        return {}
    facts = {
        name: ", ".join(f"{value} ({n:,})" if len(counts) > 1 else value for value, n in counts.items())
        for name, counts in provenance(runs).items()
        if name != "jax"  # one of the versions
    }
    seeds = Counter(record.seed for record in runs)
    seed_fact = {} if {*seeds} == {0} else {"seed": ", ".join(f"{seed} ({n:,})" for seed, n in sorted(seeds.items()))}
    return {"runs": f"{len(runs):,}", **seed_fact, **facts, **_totals(runs)}


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
        phases = {_IMPORTED: sum(filter(None, record.seconds.values()))} if record.imported else record.seconds
        seconds.update({phase: value for phase, value in phases.items() if value})
        for package, version in (record.versions or {}).items():
            versions.setdefault(package, set()).add(str(version))
    totals = ", ".join(f"{phase} {value:,.0f}" for phase, value in seconds.items())
    packages = ", ".join(f"{package} {' and '.join(sorted(numbers))}" for package, numbers in versions.items())
    columns = "train" + f" and {_IMPORTED}" * (_IMPORTED in seconds)
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
