"""Results of a bench: kept as JSON, and compared with those of another time or machine."""

import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpbench.errors import ConfigError, require
from gpbench.outputs import write_whole

THRESHOLD = 1.25
"""A ratio of times, each in units of its machine's products, above which something became slower."""

_MENDED = "make it with scripts/bench NAME --save FILE"

_measured: dict[str, dict[str, Any]] = {}


def measured(name: str, seconds: float, precision: str = "float64") -> float:
    """Keeps a result under its name, and returns it.

    Args:
        name: What was timed, as in "svgp ours m=100 b=200".
        seconds: Seconds of it.
        precision: float32 or float64, whose product rate is its unit.
    """
    _measured[name] = {"seconds": seconds, "precision": precision}
    return seconds


def count(text: str) -> int:
    """A number on the command line: a whole one from 1, or ValueError."""
    if (value := int(text)) < 1:
        raise ValueError(text)
    return value


def sizes(parts: int) -> Callable[[str], tuple[int, ...]]:
    """A reader of sizes on the command line, as "100,200" or "1e4,0": whole numbers from 0, the first from 1."""

    def size(text: str) -> tuple[int, ...]:
        values = tuple(int(float(number)) for number in text.split(","))
        if len(values) != parts or values[0] < 1 or min(values) < 0:
            raise ValueError(text)
        return values

    return size


@dataclass(frozen=True)
class Results:
    """Results with the facts of the machine, among them `product_rates` (FLOP/s by precision)."""

    facts: dict[str, Any]
    seconds: dict[str, dict[str, Any]]

    @classmethod
    def of_this_process(cls, facts: dict[str, Any]) -> "Results":
        """All that was `measured`."""
        return cls(facts, dict(_measured))

    @classmethod
    def read(cls, path: Path) -> "Results":
        """Those of a file.  Exits with a line where it cannot be read or compared."""
        try:
            content = json.loads(path.read_text())
            results = cls(content["facts"], content["results"])
            compare(results, results)
            if not all(0 < results.products(name) < math.inf for name in results.seconds):
                raise ValueError("times and product rates must be above 0")
        except OSError as error:
            reason = (error.strerror or "cannot be read").lower()
            raise SystemExit(f"--against {path}: {reason}; {_MENDED}") from error
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise SystemExit(f"--against {path}: not the results of a bench; {_MENDED}") from error
        if not results.seconds:
            raise SystemExit(f"--against {path}: it has no results; {_MENDED}")
        return results

    def write(self, path: Path) -> None:
        """Keeps them in a file, which is whole or not there."""
        write_whole(path, (json.dumps({"facts": self.facts, "results": self.seconds}, indent=1) + "\n").encode())

    def products(self, name: str) -> float:
        """The operations of matrix products that the machine would have done in the seconds of a result."""
        result = self.seconds[name]
        return float(result["seconds"] * self.facts["product_rates"][result["precision"]])

    def ratios(self, earlier: "Results") -> dict[str, float]:
        """The time of each result in both, in units of its machine's products, to the earlier one's."""
        both = [name for name in self.seconds if name in earlier.seconds]
        return {name: self.products(name) / earlier.products(name) for name in both}


def require_writable(path: Path) -> None:
    """Exits with a line where a file cannot be written, and makes none."""
    try:
        require(not path.is_dir(), f"--save {path}: is a folder", ConfigError)
        require(path.parent.is_dir(), f"--save {path}: no such folder {path.parent}", ConfigError)
        tempfile.TemporaryFile(dir=path.parent).close()
    except (OSError, ConfigError) as error:
        raise SystemExit(str(error) if isinstance(error, ConfigError) else f"--save {path}: {error.strerror}") from None


def compare(now: Results, earlier: Results, threshold: float = THRESHOLD) -> tuple[list[str], bool]:
    """The lines of a comparison, and whether something is slower by more than the threshold."""
    ratios = now.ratios(earlier)
    lines = [
        f"against {earlier.facts.get('commit') or 'an unknown commit'} on {earlier.facts.get('cpu')},"
        f" with {earlier.facts.get('others', 0.0):g} cores in use by others, now {now.facts.get('others', 0.0):g};"
        f" times in units of the machine's matrix products; slower: above {threshold:g}"
    ]
    for name, ratio in sorted(ratios.items(), key=lambda item: -item[1]):
        verdict = "slower" if ratio > threshold else "faster" if ratio < 1 / threshold else "alike"
        lines.append(f"{ratio:6.2f}  {verdict:<6}  {name}")
    lines += [f"     -  missing  {name}" for name in earlier.seconds if name not in ratios]
    return lines, any(ratio > threshold for ratio in ratios.values())
