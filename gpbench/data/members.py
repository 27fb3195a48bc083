"""What one run trains on: a split, and of a data set with several outputs one of them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpbench.data import splits
from gpbench.errors import ConfigError

Choice = int | str | Sequence[int]
"""`all`, a number from 0, or a list of them."""


class Member(NamedTuple):
    """A split and the number of an output, None where there is but one."""

    split: int
    output: int | None = None

    @property
    def identity(self) -> dict[str, int]:
        """What of it decides a run's numbers."""
        return {"split": self.split} | self.cell

    @property
    def cell(self) -> dict[str, int]:
        """What of it tells one cell of a table from another."""
        return {} if self.output is None else {"output": self.output}


def members(card: Mapping, split: Choice, output: Choice = "all") -> list[Member]:
    """Those asked for, split by split.  Raises ConfigError beyond the splits and outputs there are."""
    return [Member(k, o) for k in splits.split_numbers(card, split) for o in outputs(card, output)]


def outputs(card: Mapping, output: Choice) -> list[int | None]:
    """The numbers of the outputs asked for, [None] where there is but one.  Raises ConfigError beyond those."""
    count = int(card.get("outputs") or 1)
    if count == 1:
        if output in ("all", 0):
            return [None]
        raise ConfigError(f"output={output}: {card['name']} has one output only; leave `output` out")
    if output == "all":
        return [*range(count)]
    numbers = [output] if isinstance(output, int | str) else output
    for o in numbers:
        if not isinstance(o, int) or not 0 <= o < count:
            raise ConfigError(f"output={o}: {card['name']} has outputs 0 to {count - 1}")
    return [int(o) for o in numbers]


def name_of_output(card: Mapping, output: int | None) -> str:
    """The name of an output, as `Dataset.outputs` has it; "" where there is but one."""
    if output is None:
        return ""
    names = card.get("output_names")
    return str(names[output]) if names else f"y{output + 1}"


def label(group: Sequence[Member]) -> str:
    """What trains together, in a few words: "splits 0-4", "split 0, outputs 0-8"."""
    among: dict[int | None, None] = dict.fromkeys(member.output for member in group)
    parts = [_numbers("split", sorted({member.split for member in group}))]
    if None not in among:
        parts.append(_numbers("output", sorted(o for o in among if o is not None)))
    return ", ".join(parts)


def _numbers(noun: str, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    consecutive = list(numbers) == list(range(numbers[0], numbers[-1] + 1))
    return f"{noun}s " + (f"{numbers[0]}-{numbers[-1]}" if consecutive else ",".join(map(str, numbers)))
