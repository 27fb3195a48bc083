"""How often a board's claims are false, and what it finds, in simulated worlds and redrawn records: `board_worlds.py`.

A method's loss on a data set is minus its strength, plus Gumbel noise, so that i beats k with the Bradley-Terry
probability of their strengths (Luce's choice axiom).  A data set has the noise of its family with probability `kin`,
else its own.  Losses that differ by at most `margin` tie.  A run is lost with a probability that rises from 0 for the
first method to `lost` for the last, as of slow methods on large data; of the second half of the methods each is far
ahead or far behind, as often, by `erratic`.  The truth is what very many data sets say.

The last worlds are the recorded runs of a division: of its data sets D are drawn with replacement; what all of them say
is the truth.  The exit code is 1 where a bar is missed.
"""

import argparse
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from gpbench.analysis.board import Board, of_families, outcomes
from gpbench.api.comparisons import board_of

_MANY = 20_000
"""Data sets of the truth."""
_CLOSE = 0.01
"""Difference up to which two true shares are equal: some three standard errors of the truth."""
FALSE, KEPT = 7.0, 93.0
"""Bars in percent: most null worlds with a false claim, fewest worlds whose best method may be the best."""


@dataclass(frozen=True)
class World:
    """K methods on D data sets; see the module's docstring.  Strengths go from `spread` to 0."""

    K: int
    D: int
    spread: float = 0.0
    margin: float = 0.0
    lost: float = 0.0
    erratic: float = 0.0
    family: int = 1  # data sets of a family
    kin: float = 0.0
    as_one: bool = True  # whether the data sets of a family count as one
    found: float = 0.0  # bar: fewest true differences found, in percent

    @property
    def name(self) -> str:
        words = ("spread", "margin", "lost", "erratic", "family", "kin")
        facts = [f"{word} {value:g}" for word in words if (value := getattr(self, word)) != getattr(World, word)]
        taken = "" if self.as_one else ", taken as independent"
        return ", ".join([f"{self.K} methods, {self.D} sets", *facts]) + taken

    def losses(self, random: np.random.Generator, D: int) -> Float[ndarray, "K D"]:
        """Losses of a sample of data sets, infinite where a run is lost."""
        K, ranks = self.K, np.linspace(0.0, 1.0, self.K)[:, None]
        far = self.erratic * random.choice([-1, 1], (K, D)) * (np.arange(K) >= K // 2)[:, None]
        of_family = np.repeat(random.gumbel(size=(K, -(-D // self.family))), self.family, axis=1)[:, :D]
        noise = np.where(random.random(D) < self.kin, of_family, random.gumbel(size=(K, D)))
        losses = -(self.spread * (1.0 - ranks) + far + noise)
        return np.where(random.random((K, D)) < self.lost * ranks, np.inf, losses)

    def board(self, random: np.random.Generator, D: int | None = None) -> Board:
        """The board of a sample of data sets."""
        won = outcomes(self.losses(random, D or self.D), self.margin)
        size = self.family if self.as_one else 1
        return Board(of_families(won, [f"{d // size}" for d in range(won.shape[2])]) if size > 1 else won)

    @cached_property
    def truth(self) -> Float[ndarray, " K"]:
        """The mean shares over very many data sets."""
        random = np.random.default_rng(1)
        return np.mean([self.board(random, 480).means for _ in range(_MANY // 480)], axis=0)


@dataclass(frozen=True)
class Redrawn:
    """The recorded runs of a division, of whose data sets D are drawn."""

    division: str
    D: int
    found: float = 0.0

    @property
    def name(self) -> str:
        return f"records of {self.division} redrawn, {self.D} sets"

    @cached_property
    def _recorded(self) -> tuple[Float[ndarray, "K D"], float]:
        path = Path(__file__).resolve().parents[1] / "results" / "leaderboard" / "records.parquet"
        runs = board_of(self.division, False, path)
        return runs.array(runs.division.measures[0].loss), runs.division.measures[0].absolute

    @cached_property
    def truth(self) -> Float[ndarray, " K"]:
        return Board(outcomes(*self._recorded)).means

    def board(self, random: np.random.Generator) -> Board:
        """The board of drawn data sets."""
        losses, margin = self._recorded
        return Board(outcomes(losses[:, random.integers(losses.shape[1], size=self.D)], margin))


WORLDS: tuple[World | Redrawn, ...] = (
    World(5, 6),
    World(10, 12),
    World(26, 8),
    World(26, 26),
    World(20, 11, erratic=2.0),
    World(10, 24, family=3, kin=0.8),
    World(10, 12, spread=2.0),
    World(26, 8, spread=3.0, margin=0.2, lost=0.3),
    World(26, 26, spread=3.0, margin=0.2, lost=0.3, found=40.0),
    Redrawn("regression", 33),
)
LIMITS = (World(2, 12), World(20, 11, erratic=4.0), World(10, 24, family=3, kin=0.8, as_one=False))
"""Worlds in which the rules do not hold, which has no bar."""


def measured(world: World | Redrawn, draws: int, seed: int = 7) -> Float[ndarray, "6"]:
    """Percentages of draws of a world: with a false claim, of false ones among the claims, of true differences found,
    whose best method may be the best, with a false claim uncorrected; and the number of methods that may be the best.
    """
    random = np.random.default_rng(seed)
    gap = world.truth[:, None] - world.truth
    above, is_null = gap > _CLOSE, not (np.abs(gap) > _CLOSE).any()
    rows = []
    for _ in range(draws):
        board = world.board(random)
        better, single = board.better, board.p <= 0.025
        false, kept = (better & ~above).sum(), board.may_be_best
        best = kept.mean() if is_null else float(kept[np.argmax(world.truth)])
        found = (better & above).sum() / max(above.sum(), 1)
        rows.append([false > 0, false / max(better.sum(), 1), found, best, (single & ~above).any(), kept.sum() / 100])
    return 100 * np.mean(rows, axis=0)


def misses(world: World | Redrawn, values: Float[ndarray, "6"]) -> list[str]:
    """The bars that a world misses."""
    false, _, found, best, *_ = values
    is_null = np.ptp(world.truth) <= _CLOSE
    bars = {"false claims": is_null and false > FALSE, "found": found < world.found, "best kept": best < KEPT}
    return [name for name, is_missed in bars.items() if is_missed]


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000, help="samples of each world (default: 1000)")
    draws, missed = parser.parse_args().draws, False
    print("percent: a false claim, false of the claims, found | best kept (methods that may be) | false if uncorrected")
    for world in (*WORLDS, *LIMITS):
        values = measured(world, draws)
        faults = "" if world in LIMITS else ", ".join(misses(world, values))
        missed |= bool(faults)
        end = f": MISSED {faults}" * bool(faults) + ": a limit of the rules" * (world in LIMITS)
        a, b, c, best, plain, n = values
        print(f"{a:5.1f} {b:5.1f} {c:5.1f} | {best:5.1f} ({n:4.1f}) | {plain:5.1f} | {world.name}{end}", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
