"""Custom metrics: files and entry points, what is refused, and what records say of them."""

import importlib.metadata
from dataclasses import replace

import numpy as np
import pytest
from samples import sample

from gpbench import own_metrics
from gpbench.analysis.cells import entries, group_runs
from gpbench.analysis.rankings import ranking
from gpbench.analysis.tables import title
from gpbench.config.compose import compose
from gpbench.contract.families import examine_metric
from gpbench.errors import ConfigError
from gpbench.metrics import METRICS, Metric, Scored, better, find

FUNCTIONS = """
import numpy as np
def absolute(scored, power=1.0): return np.abs(scored.y - scored.mean) ** power
def text(scored): return "0.5"
def column(scored): return np.zeros((len(scored.y), 1))
def fails(scored): return 1 / 0
def mean(scored): return float(np.mean(scored.y))
def writes(scored): scored.mean[0] = 0.0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of --config-dir with functions of metrics."""
    (tmp_path / "metric").mkdir()
    (tmp_path / "functions_of_a_test.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def declare(folder, name="mine", function="absolute", **keys):
    values = {"_target_": f"functions_of_a_test.{function}", "better": "lower", "tasks": "[regression]", **keys}
    path = folder / "metric" / f"{name}.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in values.items()))
    return path


def scored(n=4):
    """Predictions in standardised units, of which one is 2 original units."""
    rows = np.arange(float(n))
    return Scored(y=rows, mean=rows + 1.0, var=np.ones(n), log_prob=np.zeros(n), y_mean=10.0, y_std=2.0)


def record(method, split, value, **described):
    own = {"mine": {"title": "A title", "unit": "mm", "better": "higher", **described}}
    facts = {"dataset": f"d{split % 3}", "method": method, "split": split // 3, "train_rows": 9, "test_rows": 1}
    return sample(f"{method}{split:015d}", **facts, metrics={"mine": value}, own_metrics=own)


def test_our_names_are_those_of_our_metrics_and_a_record_with_another_description_is_refused():
    assert set(own_metrics.NAMES) == set(METRICS)
    for described in ({"better": "up"}, {"title": "two\nlines"}, {"unit": 3}):
        with pytest.raises(ValueError, match=r"own_metrics\.mine is no title, unit and direction"):
            record("a", 0, 1.0, **described)


def test_a_metric_sees_original_units_and_has_an_error_over_rows_unless_it_is_one_number(folder):
    path = declare(folder, power=2.0, unit="degrees", title="a title")
    own = own_metrics.load([folder])
    values, _ = own.score("regression", scored().in_original_units())
    assert values == {"mine": 4.0} and own.score("binary", scored()) == ({}, {})
    assert own.describe(values) == {"mine": {"title": "a title", "unit": "degrees", "better": "lower"}}
    path.unlink()
    declare(folder, "rows")
    declare(folder, "whole", "mean")
    test_set = scored()
    rows = replace(test_set, mean=test_set.y + np.array([1.0, -2.0, 0.0, 4.0])).in_original_units()  # |y - mean| twice
    values, errors = own_metrics.load([folder]).score("regression", rows)
    assert values == {"rows": 3.5, "whole": 13.0}
    assert errors == {"rows": pytest.approx(np.std([2.0, 4.0, 0.0, 8.0], ddof=1) / 2.0)}


def test_files_in_folders_of_the_folder_are_no_metrics_and_the_check_finds_a_wrong_direction(folder, new_file):
    declare(folder)
    new_file(folder / "metric" / "old" / "mine.yaml", "a draft")
    assert [*own_metrics.declarations([folder, folder])] == ["mine"]
    for direction, verdict in (("lower", "kept"), ("higher", "broken")):
        declare(folder, better=direction)
        findings = list(examine_metric(own_metrics.get("mine", [folder], {})))
        assert [finding.verdict for finding in findings] == ["kept", verdict, "kept"]
    with pytest.raises(ConfigError, match="no custom metric 'mien'; did you mean mine"):
        own_metrics.get("mien", [folder], {})


def test_a_metric_that_fails_is_reported_once_with_its_file_and_left_out(folder, capsys):
    declare(folder, "sound")
    for function in ("text", "column", "fails", "writes"):
        path = declare(folder, function=function)
        own = own_metrics.load([folder])
        for _ in range(2):
            assert own.score("regression", scored().in_original_units()) == ({"sound": 2.0}, {"sound": 0.0})
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"gpbench: metric mine ({path})") and line.endswith("recorded without it")


def test_a_declaration_that_is_none_stops_a_command_before_it_starts(folder):
    for keys, message in (
        ({"name": "rmse"}, "the name rmse is built in"),
        ({"name": "objective"}, "the name objective is built in"),
        ({"name": "a-b"}, "letters, digits and underscores"),
        ({"_target_": "absolute"}, "_target_: MODULE.NAME"),
        ({"better": "less"}, "better must be lower or higher"),
        ({"tasks": "[classification]"}, "tasks must be a list of"),
        ({"title": "[1]"}, "title must be a text"),
    ):
        path = declare(folder, **keys)
        with pytest.raises(ConfigError, match=message):
            compose(["dataset=sinc", "method=linear"], [folder])
        path.unlink()


@pytest.mark.parametrize("keys", [{"function": "absent"}, {"sharpness": 1}])
def test_a_function_that_cannot_be_called_is_refused_before_training(folder, keys):
    path = declare(folder, **keys)
    with pytest.raises(ConfigError, match=str(path)):
        own_metrics.load([folder])


def test_entry_points_name_metrics_and_broken_ones_are_left_out(monkeypatch, capsys):
    metric = Metric("mine", "mm", "lower", ("regression",), lambda s: np.abs(s.y - s.mean))
    points = [importlib.metadata.EntryPoint(n, f"{n}:VALUE", own_metrics.GROUP) for n in ("mine", "broken", "rmse")]
    load = lambda point: metric if point.name != "broken" else 1 / 0
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", load)
    monkeypatch.setattr(own_metrics.plugins, "points", lambda group: points if group == own_metrics.GROUP else [])
    assert own_metrics.load([]).score("regression", scored().in_original_units())[0] == {"mine": 2.0}
    assert [line.split()[6] for line in capsys.readouterr().err.splitlines()] == ["broken", "rmse"]


def test_tables_and_rankings_take_title_and_direction_from_the_records():
    records = [record(m, k, v + 0.01 * k) for m, v in (("a", 1.0), ("b", 2.0)) for k in range(9)]
    assert title("mine", records) == "mine (A title; mm; higher is better)" and title("mine") == "mine"
    assert better("mine", records) == "higher" and better("mine") == "lower"
    cells = group_runs(records)
    assert ranking(cells, "mine").methods == ("b", "a")
    assert {entry.better for entry in entries(cells, ["mine"])} == {"higher"}
    mixed = [*records, record("c", 0, 1.0, better="lower")]
    assert find("mine", mixed).better is None  # records that contradict each other rank nothing
