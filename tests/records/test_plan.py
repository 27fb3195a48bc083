"""The plan of a job: its runs with their ids, and the one rule of which records stand for them."""

import json
from dataclasses import replace

import pytest
from samples import sample

from gpbench.config.compose import compose
from gpbench.records.identity import SCHEMA
from gpbench.records.plan import GAP, RunPlan

WORDS = ["dataset=moons", "method=constant", "split=[0,2]"]


def plan(*words):
    return RunPlan.from_config(compose([*WORDS, *words]))


def records(of, **fields):
    return {run.id: replace(sample(run.id), **{"schema": SCHEMA, "kept": False} | fields) for run in of.runs}


def test_a_plan_survives_json_and_runs_of_one_cell_differ_by_their_split_and_seed_but_not_by_their_output():
    planned = plan()
    assert RunPlan.from_json(planned.to_json()) == planned and json.loads(planned.to_json())["runs"][0]["split"] == 0
    first, second = plan().runs
    assert (first.split, second.split) == (0, 2) and first.cell == second.cell and first.id != second.id
    (other,) = plan("split=0", "seed=1").runs
    assert other.cell == first.cell and other.id != first.id
    runs = plan("dataset=kuka_sim1", "method=linear", "split=0", "output=[0,3]").runs
    assert [(run.output, run.output_name) for run in runs] == [(0, "y1"), (3, "y4")]
    assert len({run.cell for run in runs}) == len({run.id for run in runs}) == 2


def test_where_and_how_a_run_is_made_changes_its_id_only_with_a_budget_or_for_its_seconds():
    words = ["run.results=elsewhere", "run.jobs=2", "run.keep=true", "run.devices=2", "run.together=3"]
    words += ["run.predictions=true", "run.save=true"]
    assert plan(*words).runs == plan().runs == plan("run.budget=null").runs
    others = ([], ["run.budget=10"], ["run.budget=60"], ["run.timing=true"], ["run.timing=true", "run.devices=2"])
    assert len({plan(*words, "split=0").runs[0].id for words in others}) == 5


def test_what_is_recorded_is_not_missing_and_a_record_of_another_configuration_seed_or_split_is_no_such():
    planned, known = plan(), records(plan("split=2"))
    assert list(planned.recorded(known)) == [planned.runs[1].id] and planned.missing(known) == [planned.runs[0]]
    assert planned.missing(records(planned)) == [] and planned.missing({}) == list(planned.runs)
    for other in (plan("method=logistic"), plan("seed=1"), plan("split=1")):
        assert plan().recorded(records(other)) == {}


@pytest.mark.parametrize(
    ("words", "fields", "counts"),
    [
        ([], {"schema": None}, False),
        ([], {"schema": 1}, False),
        ([], {"schema": SCHEMA + 1}, False),
        ([], {"status": "diverged"}, True),
        (["run.again=true"], {}, False),
        (["run.keep=true"], {}, False),
        (["run.keep=true"], {"kept": True}, True),
        (["run.save=true"], {}, False),
        (["run.save=true"], {"saved": True}, True),
        (["run.gap=true"], {}, False),
        (["run.gap=true"], {"diagnostics": {GAP: 0.1}}, True),
        (["run.gap=true"], {"status": "diverged"}, True),
        (["run.gap=true"], {"status": "failed"}, True),
    ],
)
def test_a_record_of_this_schema_that_has_what_the_plan_asks_for_stands_for_its_run(words, fields, counts):
    planned = plan(*words)
    assert len(planned.recorded(records(planned, **fields))) == (2 if counts else 0)


@pytest.mark.parametrize("method, key", [("svi_minibatch", "inducing"), ("svdgp", "mean_basis"), ("dsdgp", "inducing")])
def test_a_default_number_of_rows_is_at_most_those_that_train_and_is_what_the_record_says(method, key):
    words = ["dataset=crabs", f"method={method}", "split=0", "dataset.rows=40"]  # 36 of 40 rows train
    default, same, larger = (
        RunPlan.from_config(compose([*words, *changes])) for changes in ([], [f"method.{key}=36"], [f"method.{key}=37"])
    )
    assert default.cfg["method"][key] == default.cfg["changes"][f"method.{key}"] == 36
    assert default.runs == same.runs
    assert larger.cfg["method"][key] == 37  # which the method refuses
    assert RunPlan.from_config(default.cfg).runs == default.runs


def test_the_components_of_gam_have_no_more_inducing_points_than_rows_by_default():
    words = ["dataset=crabs", "method=gam", "split=0"]
    assert RunPlan.from_config(compose([*words, "dataset.rows=10"])).cfg["method"]["inducing"] == 9
    assert RunPlan.from_config(compose(words)).cfg["method"]["inducing"] == 16
    svi = ["method=svi_minibatch", "split=0"]  # an explicit number, and a default that fits, stay as they are
    for small in (["dataset=crabs", "dataset.rows=40", "method.inducing=200"], ["dataset=wdbc"]):
        assert RunPlan.from_config(compose([*small, *svi])).cfg["method"]["inducing"] == 200
