"""The order of the jobs of a sweep."""

from pathlib import Path

from gpbench.config.compose import compose
from gpbench.records.collection import Collection
from gpbench.records.plan import Run, RunPlan
from gpbench.sweep.job import Job, longest_first

SEP = Path(__file__).parents[2] / "results" / "sep" / "records.parquet"


def test_unknown_jobs_start_first_and_the_papers_longest_after_them():
    words = [
        ["protocol=hl2016", f"dataset={name}", f"method={method}", f"method.inducing={m}", "split=all"]
        for m in (0.15, 0.5)
        for name in ("crabs", "australian")
        for method in ("svi", "gfitc")
    ]
    jobs = [Job(line, RunPlan.from_config(compose(line))) for line in words]
    unknown = Job(["never run"], RunPlan({}, "", [Run("0" * 16, "", 0)]))
    ordered = [job.overrides[1:4] for job in longest_first([*jobs, unknown], Collection(SEP))]
    assert ordered[0] == []
    assert ordered[1] == ["dataset=australian", "method=gfitc", "method.inducing=0.5"]
    assert ordered[-1][0] == "dataset=crabs"
