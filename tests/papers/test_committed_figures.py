"""Sentences of papers about figures, on the numbers that scripts/ wrote beside our pictures, and on committed runs."""

from pathlib import Path

import pandas as pd
from committed import PLANNER

from gpbench.claims.quantities import COMPARISONS
from gpbench.experiments import definition
from gpbench.records.collection import open_store

RESULTS = Path(__file__).parents[2] / "results"


def test_a_control_variate_of_rank_5_multiplies_both_variances_with_the_kernel_of_an_exact_gp():
    """qsgp, section 4, figure 1, for our exact GP of 1,000 rows.  A wider kernel has a tenth at rank 300."""
    table = pd.read_csv(RESULTS / "qsgp" / "fig1.csv").set_index(["kernel", "variance of", "rank"]).sort_index()
    for quantity in ("objective", "gradient"):
        line = table.loc["exact GP of 1,000 rows", quantity]
        assert line["ratio"][5] - 2 * line["se"][5] > 3  # no fall at small ranks
        assert line["ratio"].loc[5:].is_monotonic_decreasing
        wide = table.loc["lengthscale 4", quantity]
        assert (wide["ratio"] + 2 * wide["se"])[300] < 0.1


def test_control_variates_of_rank_100_and_more_lower_both_variances_for_every_kernel():
    """qsgp, section 2.4: two standard errors below that without one."""
    table = pd.read_csv(RESULTS / "qsgp" / "fig1.csv")
    large = table[table["rank"] >= 100]
    assert len(large) == 4 * 3 * 2 and (large["ratio"] + 2 * large["se"] < 1).all()


def ends_of_starts():
    """The records of sep/starts by method, from the highest objective down, each with what it kept."""
    store = open_store(RESULTS / "sep" / "records.parquet")
    jobs = definition.read("sep/starts").jobs("full")
    ends = {}
    for job, plan in zip(jobs, PLANNER.plans([*map(definition.overrides, jobs)]), strict=True):
        (run,) = plan.runs
        ends.setdefault(job["method"], []).append((store.get(run.id), store.trace(run.id)))
    return {method: sorted(of, key=lambda end: -end[0].objective) for method, of in ends.items()}


def test_from_some_starts_gfitc_ends_in_a_poor_local_optimum_and_from_others_where_sep_and_svi_do():
    """sep, section 4.2, figure 2: 4 inducing points on banana.  Distances are in standard deviations of the inputs."""
    ends = ends_of_starts()
    (best, points), *others = ends["gfitc"]
    rivals = [ends[method][0][1] for method in ("sep", "svi")]
    assert all(COMPARISONS["inducing_distance"](points, rival) < 0.25 for rival in rivals)
    poor = [(end, arrays) for end, arrays in others if end.converged and end.objective < best.objective - 50]  # nats
    assert len(poor) > 2
    for _, arrays in poor:
        assert all(COMPARISONS["inducing_distance"](arrays, rival) > 0.5 for rival in rivals)
    assert sum(end.objective > best.objective - 0.01 for end, _ in others) > 1  # the best is no chance
