"""The two sides of a comparison: methods, settings, protocols, presets, precisions or commits, and how a user names
them."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from gpbench.errors import AbsentError, ConfigError, either, nearest, require_known
from gpbench.records.record import Record

KINDS = ("method", "setting", "protocol", "preset", "precision", "commit")


@dataclass(frozen=True)
class Side:
    """One side of a comparison: the records whose field has a value."""

    kind: str  # name of the field, one of KINDS
    value: str  # value of the field; the first digits of a commit

    def includes(self, record: Record) -> bool:
        return self.matches(str(getattr(record, self.kind) or "none"))

    def matches(self, value: str) -> bool:
        return value.startswith(self.value) if self.kind == "commit" else value == self.value


def parse_sides(first: str, second: str, records: Sequence[Record]) -> tuple[Side, Side]:
    """Reads the names of two sides, which are of one kind and have different records."""
    known = {kind: {str(getattr(record, kind) or "none") for record in records} for kind in KINDS}
    sides = [_sides(text, known) for text in (first, second)]
    kinds = {side.kind for several in sides for side in several}  # those of the other name, where one is unknown
    a, b = (_single(text, several, kinds, known) for text, several in zip((first, second), sides, strict=True))
    if a.kind != b.kind:
        raise ConfigError(f"{a.kind} {a.value} and {b.kind} {b.value} are of different kinds; compare two of one kind")
    if all(a.includes(record) == b.includes(record) for record in records):
        raise ConfigError(f"{a.kind} {a.value} is on both sides; name two different ones")
    return a, b


def shared_metrics(a: Side, b: Side, records: Sequence[Record]) -> set[str]:
    """The metrics that both sides have on a data set."""
    pairs = [{(r.dataset, name) for r in records if side.includes(r) for name in r.metrics} for side in (a, b)]
    return {name for _, name in set.intersection(*pairs)}


def _sides(text: str, known: Mapping[str, Set[str]]) -> list[Side]:
    """The sides that a name can mean.  Raises ConfigError for an unknown kind, or an unknown name of a given kind."""
    kind, colon, value = text.partition(":")
    if colon:
        require_known(kind, KINDS, f"{text}: cannot compare by {kind!r}")
        value = value or "none" if kind == "setting" else value
    sides = [Side(kind, value)] if colon else [Side(kind, text) for kind in KINDS]
    sides = [side for side in sides if side.value and any(side.matches(name) for name in known[side.kind])]
    if not sides and colon:
        spell = repr if kind == "setting" else str  # settings have commas
        raise AbsentError(f"no run has {kind} {value!r}; {nearest(value, known[kind], spell)}")
    return sides


def _single(text: str, sides: Sequence[Side], kinds: Set[str], known: Mapping[str, Set[str]]) -> Side:
    """The one side that a name means.  Raises ConfigError for an unknown or ambiguous name."""
    if not sides:  # commits are not suggested: there are many, and none resembles another
        kinds = {kind for kind in kinds or KINDS if kind != "commit"} or {"commit"}
        names = set().union(*(known[kind] for kind in kinds))
        raise AbsentError(f"no run has the {either(sorted(kinds))} {text!r}; {nearest(text, names)}")
    if len(sides) > 1:
        raise ConfigError(f"{text} is ambiguous: use {either(f'{side.kind}:{side.value}' for side in sides)}")
    (side,) = sides
    if side.kind == "commit" and len(full := {name for name in known["commit"] if name.startswith(side.value)}) > 1:
        raise ConfigError(f"{len(full)} commits start with {side.value!r}: {', '.join(sorted(full))}; give more digits")
    return side
