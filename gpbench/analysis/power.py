"""Power of comparisons: the smallest difference that recorded splits show, and the splits that a difference needs.

Under the corrected resampled t test (`gpbench.analysis.statistics`) the statistic has Student's noncentral t
distribution with n - 1 degrees of freedom, whose noncentrality is the true difference over the corrected standard error
s sqrt(1 / n + n_test / n_train).  The second term has no n: differences below a floor need more data, not more splits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Power:
    """The power of the splits of a difference, in units of the metric."""

    difference: Difference  # the observed difference, which has a test
    sd: float  # standard deviation of the differences between splits
    smallest: float  # smallest true difference that `difference.n` splits show
    floor: float  # smallest true difference that any number of splits shows
    needed: float  # splits that show a true difference of the observed size; infinite where a million are too few


def power_of(noncentrality: float, n: int) -> float:
    """The probability that the two-sided test over n splits rejects: P(|T| > t) for a noncentral T."""
    from scipy.special import nctdtr, stdtrit

    shift, t = min(abs(noncentrality), _LARGE), stdtrit(n - 1, 1 - LEVEL / 2)
    below, inside = (0.0 if math.isnan(p) else p for p in nctdtr(n - 1, shift, [-t, t]))  # NaN where it underflows
    return float(below + 1 - inside)


def smallest_difference(sd: float, n: int, ratio: float) -> float:
    """The true difference that n splits show with probability `_POWER`, in units of the metric.  The other tail, of
    probability below 1e-6, is neglected.
    """
    from scipy.special import nctdtrinc, stdtrit

    return _stderr(sd, n, ratio) * float(nctdtrinc(n - 1, 1 - _POWER, stdtrit(n - 1, 1 - LEVEL / 2)))


def splits_needed(difference: float, sd: float, ratio: float) -> float:
    """The fewest splits that show a true difference with probability `_POWER`; infinity beyond a million."""

    def enough(n: int) -> bool:
        stderr = _stderr(sd, n, ratio)
        return power_of(difference / stderr if stderr else math.copysign(_LARGE, difference), n) >= _POWER

    if difference == 0 or not enough(_MOST):
        return math.inf
    few, many = 1, _MOST
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def sheet(a: Side, b: Side, differences: Sequence[Difference]) -> Sheet:
    """The sheet of the power of comparisons: a line for each difference with a test.  Raises ConfigError: no difference
    has a test.
    """
    tested = [_power(d) for d in differences if d.test.possible]
    if not tested:
        raise ConfigError(
            "no power without a test, which needs two splits that both sides have, a known correction of their"
            " variance, and records with the numbers of training and test rows: train more splits with `gpbench run`"
        )
    records = [record for p in tested for record in p.difference.records]
    sides = f"{a.value} - {b.value}"
    header = ("data set", sides, "sd of splits", "corrected se", "n", "smallest with n", "with any n", "splits needed")
    return Sheet(
        title=f"Power of the comparison of {a.value} with {b.value} on {counted(len(tested), 'data set')}.",
        grids=[Grid(title(differences[0].metric, records), header, tuple(map(_line, tested)))],
        remarks=[*feet(NOTE, differences), *(seconds_lines(records) if differences[0].metric == "seconds" else [])],
        facts=facts_of(records),
        rows=[_row(p) for p in tested],
    )


def _power(d: Difference) -> Power:
    assert d.test.stderr is not None and d.ratio is not None
    sd = d.test.stderr / _stderr(1.0, d.n, d.ratio)
    smallest, floor = (smallest_difference(sd, n, d.ratio) for n in (d.n, _MOST))
    return Power(d, sd, smallest, floor, splits_needed(d.test.mean, sd, d.ratio))


def _stderr(sd: float, n: int, ratio: float) -> float:
    return sd * math.sqrt(1 / n + ratio)


def _row(p: Power) -> dict:
    """The numbers of a line by name; `splits_needed` is "never" where no number is enough."""
    d = p.difference
    return {
        **pair_names(d),
        "difference": d.test.mean,
        "sd": p.sd,
        "stderr": d.test.stderr,
        "n_splits": d.n,
        "test_train_ratio": d.ratio,
        "smallest_difference": p.smallest,
        "floor": p.floor,
        "splits_needed": "never" if math.isinf(p.needed) else int(p.needed),
    }


def _line(p: Power) -> tuple[str, ...]:
    d = p.difference
    needed = "never" if math.isinf(p.needed) else f"{int(p.needed):,}"
    numbers = (number(p.sd), number(d.test.stderr), str(d.n), number(p.smallest), number(p.floor))
    return (d.name, f"{d.test.mean:+.4g}", *numbers, needed)
