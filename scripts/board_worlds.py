"""How often the leaderboard's intervals hold and its claims are false, in simulated worlds: `python board_worlds.py`.

A method's loss on a data set is minus its strength, plus Gumbel noise, so that i beats k with the Bradley-Terry
probability of their strengths (Luce's choice axiom).  A split has the noise of its data set with probability `shared`,
else its own.  Losses that differ by at most `margin` tie.  A method loses all splits of a data set with a probability
that rises from 0 for the first to `lost` for the last, as of slow methods on large data.  The truth is what very many
data sets estimate.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from gpbench.analysis.bradley_terry import DRAWS, ELO, Estimates, estimates, outcomes, scores, win_rates, wins

_MANY = 20_000
"""Data sets of the truth."""
_CLOSE = 5.0
"""Points up to which two true scores are equal: some two standard errors of the truth."""


@dataclass(frozen=True)
class World:
    """K methods on D data sets with S splits each; see the module's docstring.  Strengths go from `spread` to 0."""

    K: int
    D: int
    spread: float = 0.0
    shared: float = 0.5
    margin: float = 0.0
    lost: float = 0.0
    S: int = 3

    def losses(self, random: np.random.Generator, D: int) -> Float[ndarray, "K D S"]:
        """Losses of a sample of data sets, infinite where a run is lost."""
        strengths = np.linspace(self.spread, 0.0, self.K)[:, None, None]
        of_set, of_split = random.gumbel(size=(self.K, D, 1)), random.gumbel(size=(self.K, D, self.S))
        values = -(strengths + np.where(random.random((D, self.S)) < self.shared, of_set, of_split))
        chance = self.lost * np.linspace(0.0, 1.0, self.K)[:, None, None]
        return np.where(random.random((self.K, D, 1)) < chance, np.inf, values)  # on all splits of a data set

    def results(self, random: np.random.Generator, D: int) -> Float[ndarray, "D S K K"]:
        """The outcomes of comparisons on a sample of data sets."""
        losses = self.losses(random, D)
        return outcomes(losses, np.ones(losses.shape, bool), absolute=self.margin)

    def truth(self, random: np.random.Generator) -> tuple[Float[ndarray, " K"], Float[ndarray, " K"]]:
        """Scores in points, and win rates, over very many data sets."""
        won = np.sum([wins(self.results(random, 500)) for _ in range(_MANY // 500)], axis=0)
        return 1000 + ELO * scores(won), win_rates(won)


WORLDS = (
    World(2, 12),
    World(4, 12, shared=1.0),
    World(4, 12, spread=2.0),
    World(5, 6),
    World(3, 6, spread=8.0),
    World(10, 12, spread=2.0),
    World(20, 6, spread=3.0, margin=0.2, lost=0.3),
    World(26, 11, spread=3.0, margin=0.2, lost=0.3),
)


def holds_place(points: Estimates, above: Bool[ndarray, "K K"], k: int) -> bool:
    """Whether the interval of a method's place has its true one, by which methods truly stand above which."""
    low, high = points.place_interval(k)
    return bool(low <= 1 + above[:, k].sum() <= high)


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=100, help="samples of each world (default: 100)")
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"draws of data sets (default: {DRAWS})")
    args = parser.parse_args()
    print("methods  sets  spread  shared  margin  lost | scores  win rates  places | a false claim  pairs told apart")
    for world in WORLDS:
        random = np.random.default_rng(7)
        true_points, true_rates = world.truth(random)
        gap = true_points[:, None] - true_points
        above = gap > _CLOSE
        held: list[list[float]] = []
        for _ in range(args.worlds):
            points, rates = estimates(world.results(random, world.D), args.draws)
            better = points.better()
            held.append(
                [
                    np.mean(np.abs(points.values - true_points) <= points.half_widths),
                    np.mean(np.abs(rates.values - true_rates) <= rates.half_widths),
                    np.mean([holds_place(points, above, k) for k in range(world.K)]),
                    float((better & ~above).any()),
                    (better & above).sum() / max(above.sum(), 1),
                ]
            )
        scores_, rates_, places, false, apart = 100 * np.mean(held, axis=0)
        facts = f"{world.K:7d} {world.D:5d} {world.spread:7g} {world.shared:7g} {world.margin:7g} {world.lost:5g}"
        claims = f"{false:11.0f} % {apart:15.0f} %"
        print(f"{facts} | {scores_:4.0f} % {rates_:8.0f} % {places:6.0f} % | {claims}", flush=True)


if __name__ == "__main__":
    main()
