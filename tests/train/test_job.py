"""Jobs: what is trained and what is not, seeds, splits together, and what a record says."""

import json
import time

import jax
import numpy as np
import pytest
import yaml
from toys import HERE, WALK, close, job, numbers

from gpbench.config.build import build_method
from gpbench.config.compose import compose
from gpbench.core import memory
from gpbench.data import cards, splits
from gpbench.errors import ConfigError
from gpbench.records import packages
from gpbench.records.plan import RunPlan
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.train import context, programs
from gpbench.train.programs import Programs

LOGISTIC = ["dataset=moons", "method=logistic"]
SEP8 = ["dataset=moons", "method=sep", "method.inducing=8", "method.steps=12", "run.together=true"]


@pytest.mark.parametrize("words", [WALK, SEP8], ids=["walk", "sep"])
def test_a_split_alone_is_the_same_as_among_others_to_rounding(tmp_path, words):
    together = job(tmp_path / "together", *words, "split=[0,1,2]")
    alone = job(tmp_path / "alone", *words[:-1], "split=[0,1,2]", "run.together=false")
    assert [r.group for r in together + alone] == [3, 3, 3, 1, 1, 1]
    assert close(together, alone)


def test_what_ran_before_changes_nothing_and_another_seed_gives_other_numbers(tmp_path):
    after = job(tmp_path / "after", *WALK[:-1], "split=[0,1,2]", "run.together=1")
    first = job(tmp_path / "first", *WALK, "split=2")
    assert numbers(first) == numbers(after[2:])
    one, again, other = (job(tmp_path / name, *WALK, f"seed={seed}")[0] for name, seed in zip("abc", (0, 0, 1)))
    assert numbers([one]) == numbers([again])
    assert one.metrics["nll"] != other.metrics["nll"] and one.id != other.id
    assert one.cell == other.cell


def test_a_batch_of_more_rows_and_a_fraction_of_fewer_points_than_they_say_are_said(tmp_path, capsys, monkeypatch):
    job(tmp_path, "dataset=moons", "method=walk", "method.steps=2", "method.batch_size=5000")
    line = "method.batch_size=5000 is more than the 900 there are: all are used"
    assert capsys.readouterr().err == f"gpbench: warning: {line}\n"
    monkeypatch.setattr(context, "FRACTION_MOST", 10)
    job(tmp_path, "dataset=moons", "method=svi", "method.steps=1", "method.inducing=0.02")
    line = "method.inducing=0.02 of 900 rows is 18, and a fraction gives 10 at most: set method.inducing=18"
    assert line in capsys.readouterr().err


def test_predictions_are_made_in_blocks_that_fit_the_memory(tmp_path, monkeypatch):
    words = ["dataset=moons", "method=svi", "method.inducing=50", "method.batch_size=20", "method.steps=3"]
    (whole,) = job(tmp_path / "whole", *words)
    sizes = []

    def short(needed, work):
        if work.startswith("predictions"):
            sizes.append(int(work.split()[-2]))
            memory.require_memory(2**60 * (sizes[-1] > 30), work)

    monkeypatch.setattr(programs, "_SMALLEST", 7)
    monkeypatch.setattr(programs, "require_memory", short)
    (blocks,) = job(tmp_path / "blocks", *words, programs=programs.Programs)
    assert sizes == [100, 50, 25]
    assert blocks.metrics == pytest.approx(whole.metrics, rel=1e-9)


def test_factors_that_will_not_fit_are_refused_before_they_are_made(tmp_path, monkeypatch):
    minibatch = ["dataset=moons", "method=sep_minibatch", "method.batch_size=100", "method.steps=1"]
    monkeypatch.setattr(memory, "free_memory", lambda: 900 * (3 + 2 + 200) * 8 - 1)
    with pytest.raises(ConfigError, match=r"1 x 900 rows and what .* need .* GB of memory are free: try fewer"):
        job(tmp_path, *minibatch)


@pytest.mark.parametrize("words", [LOGISTIC, SEP8], ids=["logistic", "sep"])
def test_float32_works_from_data_to_record(tmp_path, words):
    single = job(tmp_path, *words, "protocol.precision=float32")[0]
    double = job(tmp_path, *words)[0]
    assert (single.precision, double.precision) == ("float32", "float64") and single.status == "done"
    assert single.metrics["nll"] == pytest.approx(double.metrics["nll"], rel=1e-2)
    assert single.metrics != double.metrics
    assert "precision=float32" in single.setting and single.cell != double.cell


def test_the_record_says_on_what_and_from_what_it_was_made(tmp_path):
    record = job(tmp_path, *WALK, "split=[0,1]", programs=Programs)[1]
    assert record.device and record.precision == "float64" and record.versions["jax"]
    assert Store(tmp_path).packages(record.packages) == packages.installed()
    assert 50 < record.peak_memory_mb < 100_000 and 0 < record.step_memory_mb < 100
    (alone,) = job(tmp_path / "alone", *WALK, "split=1")
    assert record.step_operations == alone.step_operations > 0  # of a run, whatever its group
    assert record.row_operations == alone.row_operations > 0
    seconds = {name: value for name, value in record.seconds.items() if name != "search"}
    assert set(seconds) == {"init", "compile", "train", "evaluate"} and min(seconds.values()) > 0
    assert record.seconds["search"] >= 0  # this method chooses nothing
    assert 0 < 2 * record.cpu_seconds < time.process_time()  # its half of the group's, without compilation
    assert record.data_checksum == cards.read("moons")["checksum"] and record.steps == 40
    assert (record.split_set, record.train_rows, record.test_rows) == ("random90", *splits.sizes(cards.read("moons")))
    trace = Store(tmp_path).trace(record.id)
    assert trace["step"].tolist() == [10, 20, 30, 40] and trace["nll"].shape == (4,)
    assert trace["nll"][-1] == record.metrics["nll"] and trace["objective"][-1] == record.objective


def test_splits_join_on_a_gpu_as_far_as_the_compiled_program_leaves_memory(tmp_path, monkeypatch):
    plan = RunPlan.from_config(compose([*WALK[:-1], "split=all", f"run.results={tmp_path}"], [HERE]))
    job = context.Context(plan)
    assert {len(group) for group in context.groups(job)} == {1}  # on a CPU
    group, _ = context.load(job, plan.runs[:1])
    alone = job.programs.footprint(group)
    data = sum(np.asarray(a).nbytes for a in (group.X, group.y))
    assert alone > data + 8 * (900 + 2)  # the state of `Walk` on 900 rows with two inputs
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert [len(group) for group in context.groups(job)] == [20]
    monkeypatch.setattr(context, "_GPU_BYTES", 8 * alone)
    assert [len(group) for group in context.groups(job)] == [8, 8, 4]
    monkeypatch.setattr(context, "_GPU_BYTES", alone - 1)
    assert {len(group) for group in context.groups(job)} == {1}


def test_each_output_is_a_run_of_its_own_with_the_same_numbers_alone_and_together(tmp_path, printed, new_file):
    source = {"kind": "file", "path": "two.csv", "reader": "table", "header": True, "target": [1, 2]}
    names = ["lift", "drag"]
    card = {"name": "two", "task": "regression", "outputs": 2, "output_names": names, "sources": [source]}
    new_file(tmp_path / "dataset" / "two.yaml", yaml.safe_dump(card))
    x = np.random.default_rng(0).normal(size=50)
    rows = "\n".join(f"{a},{2 * a + 0.1 * np.sin(9 * a)},{a**2}" for a in x)
    (tmp_path / "dataset" / "two.csv").write_text(f"x,lift,drag\n{rows}\n")
    words = ["run", "--json", "--config-dir", str(tmp_path), "dataset=two", "method=linear"]

    def run(folder, *more):
        said = printed(*words, f"run.results={tmp_path / folder}", *more)
        return [Record.from_json(record) for record in json.loads(said)["records"]]

    both, alone = run("both", "run.together=true"), run("alone", "output=1")
    assert [(r.output, r.group) for r in both] == [("lift", 2), ("drag", 2)]
    assert len({r.id for r in both}) == len({r.cell for r in both}) == 2
    assert (alone[0].id, alone[0].output) == (both[1].id, "drag")
    assert alone[0].metrics == pytest.approx(both[1].metrics, rel=1e-9)
    assert both[0].metrics["nmse"] < 0.01 < both[1].metrics["nmse"]
    assert alone[0].row_stderr == pytest.approx(both[1].row_stderr, rel=1e-9)
    assert both[0].row_stderr["rmse"] < 0.05 < both[1].row_stderr["rmse"]


def test_the_setting_has_a_word_of_a_kernel_and_none_of_a_key_that_is_not_read():
    def text(*words, dataset="moons"):
        cfg = compose([*words, f"dataset={dataset}"])
        return context._setting_text(build_method(cfg["method"]), cfg)

    assert text("method=constant", "protocol.noise_floor=0.01", "protocol.lengthscale_prior=null") == ""
    assert text("method=svi", "method.inducing=5", "protocol.lengthscale_prior=null") == "m=5, lengthscale_prior=null"
    assert text("method=constant", "protocol.inputs=none") == "inputs=none"
    kernel = "method.kernel={matern52: {isotropic: true, inputs: [0, 1]}}"
    words = "m=15% at least 200, kernel=matern52(isotropic, inputs=[0, 1]), likelihood=logistic"
    assert text("method=svi", "method.likelihood=logistic", kernel, dataset="heart") == words
