"""Conditions on records' fields."""

import pytest
from samples import sample

from gpbench.errors import ConfigError
from gpbench.records import filters

RECORDS = [
    sample("a", setting="m=15%, x=1", metrics={"nll": 0.4}, dirty=True),
    sample("b", dataset="heart", setting="m=25%", split=1, metrics={"nll": None}, dirty=False),
    sample("c", dataset="heart", setting="m=15%", split=10, metrics={"rmse": 3.0}, dirty=None),
]


@pytest.mark.parametrize(
    "conditions, ids",
    [
        (["dataset=heart"], "bc"),
        (["dataset=pima,heart"], "abc"),
        (["setting=m=15%, x=1"], "a"),
        (["split=1"], "b"),
        (["split>0", "split<=10"], "bc"),
        (["metrics.nll<0.5"], "a"),
        (["metrics.nll=null"], "bc"),
        (["dirty=true"], "a"),
        (["dirty<2"], ""),
        ([], "abc"),
    ],
)
def test_conditions_keep_the_records_that_meet_all_of_them(conditions, ids):
    assert "".join(record.id for record in filters.matching(RECORDS, conditions)) == ids


@pytest.mark.parametrize(
    "condition, line",
    [
        ("datset=x", "did you mean dataset"),
        ("metrics.nl<1", r"did you mean metrics\.nll"),
        ("split<a", "'a' is no number"),
        ("split", "write FIELD=VALUE"),
    ],
)
def test_a_mistake_is_one_line(condition, line):
    with pytest.raises(ConfigError, match=line):
        filters.matching(RECORDS, [condition])
