"""A run's identity is what determines its numbers; the plan of a job, and which records stand for its runs."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from samples import sample

from gpbench.config.compose import compose
from gpbench.errors import ConfigError
from gpbench.records.identity import SCHEMA, cell_id, identify, run_id
from gpbench.records.plan import GAP, RunPlan

BASE = {"method": {"name": "sep", "m": "15%", "rate": 1.0, "hidden": [3, 2]}}
BASE |= {"protocol": {"name": "clean", "jitter": 1e-6}, "data": {"name": "wdbc"}, "data_checksum": "ab12", "split": 0}
BASE |= {"seed": 0}


def without(*keys):
    return {key: value for key, value in BASE.items() if key not in keys}


def test_an_id_is_16_hex_digits_that_depend_on_values_alone_and_a_cell_leaves_out_split_and_seed():
    of_method = lambda method: run_id(**{**BASE, "method": method})
    assert len(run_id(**BASE)) == 16 and int(run_id(**BASE), 16)
    assert of_method(dict(reversed(BASE["method"].items()))) == run_id(**BASE)
    assert of_method({**BASE["method"], "hidden": (3, 2)}) == run_id(**BASE)
    assert of_method({**BASE["method"], "rate": 1}) != run_id(**BASE)  # a whole number is no float
    assert cell_id(**without("split", "seed")) == cell_id(**without("split", "seed"))
    assert cell_id(**without("split", "seed", "data"), data={"name": "pima"}) != cell_id(**without("split", "seed"))


def test_every_part_of_the_identity_changes_the_id_and_nan_is_refused():
    method, protocol = BASE["method"], BASE["protocol"]
    changes = [{"split": 1}, {"seed": 1}, {"data_checksum": "ab13"}, {"data": {"name": "pima"}}]
    changes += [{"method": method | {"rate": 1.5}}, {"method": method | {"rate": True, "m": None}}]
    for change in [*changes, {"protocol": protocol | {"jitter": 1e-5}}]:
        assert run_id(**BASE | change) != run_id(**BASE), change
    with pytest.raises(ValueError):
        run_id(**{**BASE, "protocol": {"jitter": float("nan")}})


CARD = {"name": "wdbc", "task": "binary", "splits": {"set": "random90", "sets": {"random90": 5}}}
PROTOCOL = {"name": "clean", "inputs": "standardise", "targets": "standardise", "precision": "float64", "steps": 250}
CONFIG = {"method": {"name": "svi", "inducing": 20}, "protocol": PROTOCOL, "dataset": CARD, "run": {"timing": False}}


def identity(**sections):
    return identify({**CONFIG, **sections}, "ab12")


@pytest.mark.parametrize(
    ("section", "change", "is_same"),
    [
        *(("protocol", PROTOCOL | change, True) for change in ({"steps": 300}, {"new": [1, 2]}, {"start": "rows"})),
        ("protocol", {"name": "clean"}, True),  # a neutral value is as one that is absent
        *(("protocol", PROTOCOL | change, False) for change in ({"inputs": "unit"}, {"targets": "none"})),
        *(("protocol", PROTOCOL | change, False) for change in ({"precision": "float32"}, {"name": "my"})),
        *(("dataset", CARD | change, True) for change in ({"title": "Breasts"}, {"oddities": ["none"]})),
        *(("dataset", CARD | change, True) for change in ({"sources": []}, {"cite": "them"})),
        ("dataset", CARD | {"task": "regression"}, False),
        ("dataset", CARD | {"splits": {"set": "official", "sets": {"official": 1}}}, False),
    ],
)
def test_what_reaches_arrays_metrics_or_the_record_changes_the_id_and_nothing_else_does(section, change, is_same):
    assert (identity(**{section: change}) == identity()) == is_same


def test_the_identity_has_a_schema_number_and_a_key_added_later_with_its_implied_value_changes_nothing():
    def later(value, implied="gaussian"):
        return identity(method=CONFIG["method"] | {"likelihood": value}, implied={"likelihood": implied})

    assert later("gaussian") == identity() != later("laplace")
    assert later(1.0, implied=1.0) == identity() != later(1, implied=1.0)
    assert identity()["schema"] == SCHEMA


def test_the_section_implied_is_not_part_of_the_method(tmp_path):
    (tmp_path / "method").mkdir()
    file = tmp_path / "method" / "own.yaml"
    words = ["dataset=moons", "method=own", "method.depth=2"]
    file.write_text("{_target_: own.Own, depth: 1, width: 3, implied: {width: '${protocol.steps}'}}")
    cfg = compose(words, [tmp_path])
    assert cfg["method"] == {"_target_": "own.Own", "depth": 2, "width": 3} and cfg["implied"] == {"width": 250}
    assert cfg["changes"] == {"method.depth": 2}
    file.write_text("{_target_: own.Own, depth: 1, implied: {widht: 3}}")
    with pytest.raises(ConfigError, match=r"method\.implied: 'widht' is not a key of the method"):
        compose(words, [tmp_path])


def test_id_is_the_same_in_another_process_and_records_import_neither_jax_nor_numpy():
    code = f"from gpbench.records.identity import run_id; print(run_id(**{BASE!r}))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == run_id(**BASE)
    code = (
        "import sys; from gpbench.records import collection, environment as e, identity, plan, store; "
        "e.facts(); assert not {'jax', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("method=vsgpr method.target_noise={}", 1),
        ("method=svi protocol.lengthscale_prior={{median:{},spread:1}}", 1),
        ("method=svi method.natural_step={}", 1),
        ("method=svi method.inducing={}", 2),  # one inducing point is not all rows
    ],
)
def test_a_whole_number_in_a_field_of_real_numbers_is_that_real_number(words, count):
    configurations = [compose([*words.format(one).split(), "dataset=sinc"]) for one in ("1", "1.0")]
    assert len({cell_id(**identify(cfg, "x")) for cfg in configurations}) == count


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


def test_where_and_how_a_run_is_made_changes_no_id_but_timed_ones_and_what_is_recorded_is_not_missing():
    words = ["run.results=elsewhere", "run.jobs=2", "run.keep=true", "run.devices=2", "run.together=3"]
    words += ["run.predictions=true", "run.save=true"]
    assert plan(*words).runs == plan().runs == plan("run.cpu_limit=9").runs
    others = ([], ["run.timing=true"], ["run.timing=true", "run.devices=2"])
    assert len({plan(*words, "split=0").runs[0].id for words in others}) == 3
    planned, known = plan(), records(plan("split=2"))
    assert list(planned.recorded(known)) == [planned.runs[1].id] and planned.missing(known) == [planned.runs[0]]
    assert planned.missing(records(planned)) == [] and planned.missing({}) == list(planned.runs)
    for other in (plan("method=logistic"), plan("seed=1"), plan("split=1")):
        assert plan().recorded(records(other)) == {}


@pytest.mark.parametrize(
    ("words", "fields", "counts"),
    [
        ([], {"schema": None}, False),
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
        ([], {"status": "failed", "cpu_limit": 9.0}, False),
        (["run.cpu_limit=9", "run.gap=true"], {"status": "failed", "cpu_limit": 9.0}, True),
        (["run.cpu_limit=10"], {"status": "failed", "cpu_limit": 9.0}, False),
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
