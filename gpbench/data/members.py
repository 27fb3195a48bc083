"""Members: the pairs of a split and an output that runs train on."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpbench.data import splits
from gpbench.data.faults import refuse
from gpbench.errors import ConfigError, require

_Choice = int | str | Sequence[int]  # `all`, a number from 0, or a list of them


class Member(NamedTuple):
    """A split and the number of an output, None for a data set with one output."""

    split: int
    output: int | None = None

    @property
    def identity(self) -> dict[str, int]:
        """The part of a run's identity that the member decides."""
        return {"split": self.split} | self.cell

    @property
    def cell(self) -> dict[str, int]:
        """The part of a cell's identity that the member decides: the output."""
        return {} if self.output is None else {"output": self.output}


def members(card: Mapping, split: _Choice, output: _Choice = "all") -> list[Member]:
    """The members of these splits and outputs, split by split.  Raises ConfigError: no such split or output."""
    return [Member(k, o) for k in splits.split_numbers(card, split) for o in outputs(card, output)]


def outputs(card: Mapping, output: _Choice) -> list[int | None]:
    """The numbers of these outputs, [None] for a data set with one output.  Raises ConfigError: no such output."""
    count = int(card.get("outputs") or 1)
    if count == 1:
        sole = f"{card['name']} has one output only; leave `output` out"
        require(output in ("all", 0), f"output={output}: {sole}", ConfigError)
        return [None]
    numbers = range(count) if output == "all" else [output] if isinstance(output, int | str) else output
    known = f"{card['name']} has outputs 0 to {count - 1}"
    refuse((f"output={o}: {known}" for o in numbers if not (isinstance(o, int) and 0 <= o < count)), ConfigError)
    return [int(o) for o in numbers]


def name_of_output(card: Mapping, output: int | None) -> str:
    """The name of the output of this number, as in `Dataset.outputs`; "" for None."""
    if output is None:
        return ""
    names = card.get("output_names")
    return str(names[output]) if names else f"y{output + 1}"


def label(group: Sequence[Member]) -> str:
    """A label for a group of members: "splits 0-4", or "split 0, outputs 0-8"."""
    split_numbers = sorted({member.split for member in group})
    output_numbers = sorted({member.output for member in group if member.output is not None})
    parts = []
    for noun, numbers in (("split", split_numbers), ("output", output_numbers)):
        if numbers:
            consecutive = numbers == [*range(numbers[0], numbers[-1] + 1)]
            several = f"{numbers[0]}-{numbers[-1]}" if consecutive else ",".join(map(str, numbers))
            parts.append(f"{noun}s {several}" if len(numbers) > 1 else f"{noun} {numbers[0]}")
    return ", ".join(parts)
