"""Trackers follow each run of a group, go on with one that resumes, and lose no training by what they do."""

import importlib.metadata
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock, call

import pytest
from samples import sample
from toys import WALK, StopAfter, job, numbers

from gpbench import plugins
from gpbench.config.compose import compose
from gpbench.errors import ConfigError, Stopped
from gpbench.records.store import Store
from gpbench.train.trackers import Trackers

POINT = importlib.metadata.EntryPoint("mine", "mine:Tracker", "gpbench.loggers")


@pytest.fixture
def said(monkeypatch):
    """What an installed tracker heard, which fails at what `said.fault` names."""
    heard = SimpleNamespace(events=[], fault="")

    class Tracker:
        def __init__(self, *run):
            self.id, heard.results = run[0], run[-1]
            self.hear("begin", run)

        def hear(self, *event):
            heard.events.append((self.id, *event))
            if event[0] == heard.fault:
                raise SystemExit("no server\nat http://me:secret@there")

        def update(self, *point):
            self.hear("update", *point)

        def end(self, status):
            kept = len(Store(heard.results).ids()) if status == "done" else 2
            assert kept == 2, "a tracker may wait, and every run of the group is on the disk before"
            self.hear("end", status)

    monkeypatch.setattr(plugins, "points", lambda group: [POINT] * (group == POINT.group))
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda point: Tracker)
    return heard


def test_each_run_of_a_group_is_followed_to_its_record_through_a_stop(tmp_path, said):
    words = [*WALK, "split=[0,1]", "run.log=mine"]
    with pytest.raises(Stopped):
        job(tmp_path, *words, stop=StopAfter(1))
    assert [event[1:] for event in said.events[-2:]] == [("end", "stopped")] * 2
    records = job(tmp_path, *words)
    begun = [event[2] for event in said.events if event[1] == "begin"]
    assert [id for id, *_ in begun] == 2 * [record.id for record in records] and begun[:2] == begun[2:]
    _, label, settings, results = begun[1]
    facts = {"dataset": "moons", "split": 1, "method": "walk", "method.batch_size": 64, "protocol.precision": "float64"}
    assert label == "moons  walk    clean  split 1" and results == tmp_path and facts.items() <= settings.items()
    for record in records:
        *points, final = [event[2:] for event in said.events if event[:2] == (record.id, "update")]
        trace = Store(tmp_path).trace(record.id)
        for name, values in (("step", 0), ("objective", 1)):
            assert [point[values] for point in points] == trace[name].tolist()
        assert [metrics["nll"] for *_, metrics in points] == trace["nll"].tolist()
        assert record.metrics.items() <= final[2].items() and final[:2] == (record.steps, record.objective)
        assert said.events.count((record.id, "end", "done")) == 1


def test_a_tracker_without_functions_is_one_that_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(plugins, "points", lambda group: [POINT])
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda point: lambda *run: object())
    assert job(tmp_path, *WALK, "split=0", "run.log=mine")[0].status == "done"
    assert "run.log=mine: AttributeError: 'object' object has no attribute 'update'" in capsys.readouterr().err


@pytest.mark.parametrize("fault", ["begin", "update", "end"])
def test_a_tracker_that_fails_is_named_once_and_loses_nothing(tmp_path, said, fault, capsys):
    said.fault, words = fault, [*WALK, "split=[0,1]"]
    followed = job(tmp_path / "followed", *words, "run.log=[mine]")
    assert Store(tmp_path / "followed").config(followed[0].id)["run"]["log"] == ["mine"]
    assert numbers(followed) == numbers(job(tmp_path / "alone", *words))
    line = "gpbench: warning: run.log=mine: SystemExit: no server at http://there; training goes on without it\n"
    assert capsys.readouterr().err == line and [event[1] for event in said.events].count(fault) == 1


def test_names_are_checked_before_anything_trains(monkeypatch, said):
    assert compose(["run.log=[mine]"])["run"]["log"] == ["mine"]
    monkeypatch.setitem(sys.modules, "wandb", None)
    for word, line in {
        "[mine,mlfow]": "run.log=mlfow: no such tracker; did you mean mlflow",
        "wandb": r"run.log=wandb: wandb is not installed: .* '.\[trackers\]'",
        "mine run.cpu_limit=60": "leave it out, or run.cpu_limit",
        "3": "run.log=3: no such tracker; known are mine, mlflow, tensorboard, wandb",
    }.items():
        with pytest.raises(ConfigError, match=line):
            compose(f"run.log={word}".split())


FINAL = {"nll": 0.5, "objective": -2.0, "seconds": 1.5, "steps": 20.0}


def follow(name, results):
    """Follows a run to its end by one of our trackers: a point, then the record."""
    trackers, id = Trackers(name), "a" * 16
    numbers = {"metrics": {"nll": 0.5, "auc": None}, "seconds": {"train": 1.5, "compile": None}}
    trackers.begin(id, "a b", {"seed": 0, "method.ranks": [1, None]}, results)
    trackers.update([id], 10, [-3.0], {"nll": [0.75]})
    trackers.end(sample(id, steps=20, objective=-2.0, **numbers))


def test_wandb_and_tensorboard_have_settings_points_and_what_became_of_a_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "wandb", wandb := MagicMock())
    monkeypatch.setitem(sys.modules, "tensorboardX", board := MagicMock())
    follow("wandb", tmp_path)
    follow("tensorboard", tmp_path)
    assert {"id": "a" * 16, "name": "a b", "resume": "allow"}.items() <= (known := wandb.init.call_args.kwargs).items()
    run, settings = wandb.init.return_value, {"seed": 0, "method.ranks": [1, None]}
    points = [call.log({"nll": 0.75, "objective": -3.0}, step=10), call.log(FINAL, step=20)]
    assert known["config"] == settings
    assert run.mock_calls[:2] + run.mock_calls[-1:] == [*points, call.finish(exit_code=0)]
    scalars = [each.args for each in board.summary.scalar.call_args_list]
    assert scalars[:2] == [("nll", 0.75), ("objective", -3.0)] and dict(scalars[2:]) == FINAL
    texts = [call("settings", "seed=0  \nmethod.ranks=[1, null]"), call("status", "done")]
    assert board.summary.text.call_args_list == texts and board.event_file_writer.EventsWriter.return_value.flush.called
    assert (tmp_path / "tensorboard" / f"{'a' * 16}_a_b").is_dir() and capsys.readouterr().err == ""


def test_mlflow_goes_on_with_the_run_of_the_same_id(tmp_path, monkeypatch, capsys):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: the extra `trackers`")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    for _ in range(2):
        follow("mlflow", tmp_path)
    (run,) = mlflow.search_runs(experiment_names=["gpbench"], output_format="list")
    assert run.data.metrics == FINAL and run.data.params == {"seed": "0", "method.ranks": "[1, None]"}
    assert run.info.status == "FINISHED" and run.info.run_name == "a b" and "warning" not in capsys.readouterr().err
    points = mlflow.MlflowClient().get_metric_history(run.info.run_id, "nll")
    assert {(point.step, point.value) for point in points} == {(10, 0.75), (20, 0.5)}
