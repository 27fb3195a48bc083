"""What recorded runs say of themselves where no experiment describes them: their splits, kernels and steps."""

from collections.abc import Callable, Iterable, Sequence

from gpbench import paths, yamls
from gpbench.papers.published import parts
from gpbench.records.record import Record

_FEW = 3
"""Largest number of values that are listed; of more the first and the last are."""


def run_facts(records: Iterable[Record], settings: str = "") -> dict[str, str]:
    """The splits, kernels, settings and steps of these runs, by name; without those that no record has."""
    runs = [*records]
    files = paths.yaml_files("method")
    names = {record.method for record in runs} & files.keys()
    defaults = {name: str(yamls.read(files[name]).get("kernel") or "") for name in names}
    kernels = _by_value(runs, lambda r: r.method, lambda group: _kernels(group, defaults))
    steps = _by_value(runs, lambda r: r.method, _steps)
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
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(name(record), []).append(record)
    names: dict[str, list[str]] = {}
    for group in sorted(groups):
        if text := value(groups[group]):
            names.setdefault(text, []).append(group)
    if len(names) == 1 and len(groups) == len(*names.values()):
        return next(iter(names))
    return "; ".join(f"{', '.join(members)} {text}" for text, members in names.items())


def _kernels(records: Sequence[Record], defaults: dict[str, str]) -> str:
    default = "" if any(record.imported for record in records) else defaults.get(records[0].method, "")
    return _listed(str(parts(record.setting).get("kernel") or default) for record in records)


def _steps(records: Sequence[Record]) -> str:
    numbers = sorted({record.steps for record in records if record.steps and record.steps > 1})
    texts = [f"{number:,}" for number in numbers]
    return _listed(texts) if len(texts) <= _FEW else f"{texts[0]} to {texts[-1]}"


def _splits(records: Sequence[Record]) -> str:
    sets: dict[str, set[int]] = {}
    for record in records:
        sets.setdefault(record.split_set or "", set()).add(record.split)
    return "; ".join(", ".join(filter(None, [name, _span(sorted(numbers))])) for name, numbers in sorted(sets.items()))


def _span(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    if len(numbers) > _FEW - 1 and last - first == len(numbers) - 1:
        return f"{first} to {last}"
    return ", ".join(map(str, numbers))


def _listed(texts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(text for text in texts if text))
