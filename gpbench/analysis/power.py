"""Power of comparisons: the smallest difference that recorded splits show, and the splits that a difference needs.

Under the corrected resampled t test (`gpbench.analysis.statistics`) the statistic has Student's noncentral t
distribution with n - 1 degrees of freedom, whose noncentrality is the true difference over the corrected standard error
s sqrt(1 / n + n_test / n_train).  The second term has no n: differences below a floor need more data, not more splits.
"""

import bisect
import math
from collections.abc import Mapping, Sequence

from gpbench.analysis.differences import Difference, feet, pair_names
from gpbench.analysis.printing import counted, number
from gpbench.analysis.provenance import facts_of, seconds_lines
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.analysis.sides import Side
from gpbench.analysis.statistics import LEVEL
from gpbench.analysis.tables import title
from gpbench.errors import ConfigError

_POWER = 0.8  # probability with which a difference is to be shown
NOTE = (
    "smallest true difference that n splits, or any number of them, show with 80 % probability, and splits needed if"
    " the true difference is the observed one: corrected resampled t test, two-sided at 5 %, with the observed standard"
    " deviation of splits"
)
_MOST = 10**6  # number of splits beyond which more of them change nothing
_LARGE = 100.0  # noncentrality that is significant with any number of splits, and that SciPy's functions still compute


def power_of(noncentrality: float, n: int) -> float:
    """The probability that the two-sided test over n splits rejects: P(|T| > t) for a noncentral T."""
    from scipy.special import nctdtr, stdtrit

    shift, t = min(abs(noncentrality), _LARGE), stdtrit(n - 1, 1 - LEVEL / 2)
    below, inside = (0.0 if math.isnan(p) else p for p in nctdtr(n - 1, shift, [-t, t]))  # NaN where it underflows
    return float(below + 1 - inside)


def smallest_difference(sd: float, n: int, ratio: float) -> float:
    """The true difference that n splits show with probability `_POWER`, without the other tail, below 1e-6."""
    from scipy.special import nctdtrinc, stdtrit

    return _stderr(sd, n, ratio) * float(nctdtrinc(n - 1, 1 - _POWER, stdtrit(n - 1, 1 - LEVEL / 2)))


def splits_needed(difference: float, sd: float, ratio: float) -> float:
    """The fewest splits that show a true difference with probability `_POWER`; infinity beyond a million."""

    def enough(n: int) -> bool:
        stderr = _stderr(sd, n, ratio)
        return power_of(difference / stderr if stderr else math.copysign(_LARGE, difference), n) >= _POWER

    if difference == 0 or not enough(_MOST):
        return math.inf
    return bisect.bisect_left(range(_MOST), True, lo=2, key=enough)


def sheet(a: Side, b: Side, differences: Sequence[Difference]) -> Sheet:
    """The sheet of the power of comparisons: a line for each difference with a test."""
    powers = [(d, row) for d in differences if (row := _row(d))]
    if not powers:
        raise ConfigError(
            "no power without a test, which needs two splits that both sides have, a known correction of their"
            " variance, and records with the numbers of training and test rows: train more splits with `gpbench run`"
        )
    records = [record for d, _ in powers for record in d.records]
    sides = f"{a.value} - {b.value}"
    header = ("data set", sides, "sd of splits", "corrected se", "n", "smallest with n", "with any n", "splits needed")
    lines = tuple(_line(d, row) for d, row in powers)
    return Sheet(
        title=f"Power of the comparison of {a.value} with {b.value} on {counted(len(powers), 'data set')}.",
        grids=[Grid(title(differences[0].metric, records), header, lines)],
        remarks=[*feet(NOTE, differences), *(seconds_lines(records) if differences[0].metric == "seconds" else [])],
        facts=facts_of(records),
        rows=[row for _, row in powers],
    )


def _stderr(sd: float, n: int, ratio: float) -> float:
    return sd * math.sqrt(1 / n + ratio)


def _row(d: Difference) -> dict:
    """The numbers of a line by name, {} without a test; `splits_needed` is "never" where no number is enough."""
    if d.test.stderr is None or d.ratio is None:
        return {}
    sd = d.test.stderr / _stderr(1.0, d.n, d.ratio)
    needed = splits_needed(d.test.mean, sd, d.ratio)
    return {
        **pair_names(d),
        "difference": d.test.mean,
        "sd": sd,
        "stderr": d.test.stderr,
        "n_splits": d.n,
        "test_train_ratio": d.ratio,
        "smallest_difference": smallest_difference(sd, d.n, d.ratio),
        "floor": smallest_difference(sd, _MOST, d.ratio),
        "splits_needed": "never" if math.isinf(needed) else int(needed),
    }


def _line(d: Difference, row: Mapping) -> tuple[str, ...]:
    needed = row["splits_needed"]
    floors = (number(row["smallest_difference"]), number(row["floor"]))
    words = (f"{d.test.mean:+.4g}", number(row["sd"]), number(row["stderr"]), str(d.n), *floors)
    return (d.name, *words, needed if needed == "never" else f"{needed:,}")
