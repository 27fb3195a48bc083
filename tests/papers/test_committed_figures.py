"""Sentences of papers about figures, on the numbers that scripts/ wrote beside our pictures."""

from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).parents[2] / "results"


def test_a_control_variate_of_rank_300_leaves_more_than_a_tenth_of_the_variance_and_of_rank_5_multiplies_it():
    """qsgp, section 4, figure 1, for our exact GP of 1,000 rows.  A wider kernel has a tenth."""
    table = pd.read_csv(RESULTS / "qsgp" / "fig1.csv").set_index(["kernel", "variance of", "rank"]).sort_index()
    for quantity in ("objective", "gradient"):
        line = table.loc["exact GP of 1,000 rows", quantity]
        assert line["ratio"][300] - 2 * line["se"][300] > 0.1
        assert line["ratio"][5] - 2 * line["se"][5] > 3  # no fall at small ranks
        assert line["ratio"].loc[5:].is_monotonic_decreasing
        wide = table.loc["lengthscale 4", quantity]
        assert (wide["ratio"] + 2 * wide["se"])[300] < 0.1


def test_control_variates_of_rank_100_and_more_lower_both_variances_for_every_kernel():
    """qsgp, section 2.4: two standard errors below that without one."""
    table = pd.read_csv(RESULTS / "qsgp" / "fig1.csv")
    large = table[table["rank"] >= 100]
    assert len(large) == 4 * 3 * 2 and (large["ratio"] + 2 * large["se"] < 1).all()
