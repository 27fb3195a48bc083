"""Mistakes in calls of the Python interface: each is a GpbenchError of one line that names the keyword."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpbench

SEP = Path(__file__).resolve().parents[2] / "results" / "sep" / "records.parquet"
LINEAR = {"method": "linear", "dataset": "sinc", "run__device": "cpu"}

CALLS = {
    "run(results=3)": "results=3: must be a text, a path or None",
    "run(config_dir=3)": "config_dir=3: must be a text, a path or a list, each entry a text or a path",
    "run(config_dir=[3])": "config_dir=[3]: must be",
    "run(config_dir='nowhere')": "^config_dir .*nowhere: no such folder",
    "run(overrides=[1])": "overrides=[1]: must be a list, each entry a text",
    "run(overrides=None)": "overrides=None: must be a list",
    "run('sep')": "run: too many positional arguments",
    "run(method=None)": "method=null: dataset, method and protocol each take a name",
    "run(method=3)": "protocol each take a name",
    "run(method='a b')": "no such method",
    'run(method="it\'s\\\\")': "no such method",
    "run(method='')": "no such method",
    "run(method=object())": "no such method",
    "run(method={'a': 1})": "method",
    "run(dataset=np.array(['pima', 'heart']))": "call gpbench.multirun",
    "run(split='0,1')": "split=0,1: must be",
    "run(overrides=['split=0,1'])": "split=0,1 is a sweep: call gpbench.multirun, or write a list",
    "run(overrides=['='])": "no key ''; known are",
    "run(overrides=['method=[a'])": "cannot read 'method=[a'; write key=value",
    "run(split=-1)": "split=-1: must be",
    "run(split=1.5)": "split=1.5: must be",
    "run(split=[])": "split=[]: must be",
    "run(split=None)": "split=null: must be",
    "run(seed=float('nan'))": "seed=nan: must be",
    "run(method__inducing=float('inf'))": "method.inducing=inf: must be",
    "run(method__inducing={1, 2})": "method.inducing=[1, 2]: must be",
    "run(method__inducing=np.ones((2, 2)))": "method.inducing=[[1.0, 1.0], [1.0, 1.0]]: must be",
    "run(method__nothing__at_all=1)": "no key 'nothing' in method",
    "run(**{'a b': 1})": "cannot read 'a b=1'",
    "run(**{'': 1})": "no key ''; known are",
    "run(run__jobs=2)": "run.jobs=2: these are the processes of a sweep: call gpbench.multirun, or leave the word out",
    "run(method='linear', overrides=['method=sep'])": "method is given twice, method=linear and method=sep: leave",
    "run(overrides=['seed=1', 'seed=2'])": "^seed is given twice, seed=1 and seed=2: leave one out$",
    "table('heart')": "no experiment 'heart'; it is a data set: give dataset=heart",
    "ls('methods', results='nowhere')": "results nowhere selects runs: write `gpbench ls runs --results nowhere`",
    "run(overrides=['hydra.verbose=true'])": "hydra.verbose=true: gpbench reads only hydra",
    "run(overrides=['hydra/launcher=slurm'])": "only sweeps have a launcher: call gpbench.multirun, or leave it out",
    "load('sinc', overrides=['dataset=heart'])": "dataset is given twice, dataset=sinc and dataset=heart",
    "multirun(jobs=2, run__jobs=3)": "run.jobs is given twice, run.jobs=3 and run.jobs=2",
    "multirun(overrides=['hydra/sweeper=optuna'])": "hydra/sweeper=optuna: gpbench reads only hydra",
    "run(run__save='yes')": "run.save=yes: must be true or false",
    "run(run__results='b', results='a')": "results and run.results both name the results folder",
    "run(results='a', overrides=['run.results=b'])": "results and run.results both name the results folder",
    "run(**{'run.results': 'b'}, results='a')": "results and run.results both name the results folder",
    "run(method__steps=1, **{'method.steps': 2})": "method.steps is given twice",
    "multirun(jobs='two')": "jobs='two': must be a whole number",
    "multirun(jobs=True)": "jobs=True: must be a whole number",
    "multirun(jobs=0)": "run.jobs=0: must be",
    "multirun(method=['sep', None])": "method=null: dataset, method and protocol each take a name",
    "multirun(results='a', run__results='b')": "results and run.results both name the results folder",
    "table(3)": "experiment=3: must be a text or None",
    "table(metric=3)": "metric=3: must be a text, a list, each entry a text or None",
    "table(metric=['nll', 3])": "metric=['nll', 3]: must be",
    "table('sep/table1', config_dir=b'x')": "config_dir=b'x': must be",
    "table(dataset=3)": "dataset=3: must be",
    "table(setting=0.15)": "setting=0.15: must be",
    "table(results=3)": "results=3: must be",
    "table(results='nowhere')": "nowhere",
    "table(metrics='nll')": "no argument 'metrics'; did you mean metric?",
    "table('sep/table1', metric='nll')": "^metric: sep/table1 says itself",
    "table('sep/tabel1')": "did you mean",
    "rank(metric=3)": "metric=3: must be a text or None",
    "rank(metric=['nll'])": "metric=['nll']: must be a text or None",
    "rank(test=3)": "test=3: must be",
    "rank(test='t')": "test",
    "compare(3, 'svi')": "a=3: must be a text",
    "compare('sep')": "compare: missing a required argument: 'b'",
    "compare('sep', None)": "b=None: must be a text",
    "compare('sep', 'svii')": "no run has the method 'svii'; did you mean svi?",
    "compare('', 'svi')": "no run has the method ''",
    "power('sep', 3)": "b=3: must be a text",
    "verify(3)": "name=3: must be a text",
    "verify(None)": "name=None: must be a text",
    "verify('sep', preset=3)": "preset=3: must be",
    "verify('sep', preset='ful')": "ful",
    "verify('sep', protocol='cleen')": "no protocol 'cleen'; did you mean clean?",
    "verify('spe')": "did you mean",
    "load(3)": "dataset=3: must be a text",
    "load(None)": "dataset=None: must be a text",
    "load('\\0')": "dataset='\\x00': has a null character",
    "table(results=['a', 'b\\0'])": "results=['a', 'b\\x00']: has a null character",
    "load('')": "no such data set",
    "load('sinc', protocol=None)": "protocol=None: must be a text",
    "load('sinc').split(-1)": "split",
    "load('sinc').split('a')": "split: number='a': must be a whole number",
    "load('sinc').split(99)": "split",
    "load('sinc').split(1.0)": "number=1.0: must be a whole number",
    "load('sinc').split(0, output=1)": "output=1: sinc has one output only",
    "load('sinc').split(0, output='y')": "output='y': must be a whole number or None",
    "load_run(3)": "run=3: must be a text, a Record or None",
    "load_run('xyz')": "xyz",
    "load_run('')": "run",
    "load_run(results='nowhere')": "nowhere",
    "frame(3)": "results=3: must be",
    "frame(results='nowhere')": "nowhere",
    "frame(long='yes')": "long='yes': must be True or False",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return gpbench.load_run(gpbench.run(**LINEAR, run__save=True, results=folder)[0].id, results=folder)


@pytest.mark.parametrize(("call", "message"), CALLS.items(), ids=CALLS)
def test_a_wrong_argument_is_one_line(call, message, tmp_path, monkeypatch):
    monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path if call.startswith(("run", "multirun", "load")) else SEP))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gpbench.GpbenchError) as caught:
        eval(f"gpbench.{call}", {"gpbench": gpbench, "np": np})
    line = str(caught.value)
    assert "\n" not in line and "--config-dir" not in line
    assert re.search(message if message.startswith("^") else re.escape(message), line), line


WRONG = (
    "run(method='seb')",
    "run(method__inducng=3)",
    "run(dataset='hart')",
    "run(protocol='cleen')",
    "run(split=99)",
    "run(method='sep', overrides=['method.steps=1+'])",
    "run(dataset='no.csv', target='y')",
    "multirun(method=['sep', 'seb'])",
    "load('hart')",
    "load_run('zzzz')",
    "table('sep/tabel1')",
    "rank(method='sepp')",
    "verify('sepp')",
    "compare('sep', 'sv')",
    "frame('nowhere')",
    "Regressor('sviii').fit([[1.0], [2.0]], [1.0, 2.0])",
    "Classifier(options={'method.indcing': 3}).fit([[1.0], [2.0]], [0, 1])",
)
_LINES = """
import json, sys, traceback
import gpbench

def lines(call):
    try:
        eval(f"gpbench.{call}")
    except Exception:
        return traceback.format_exc().splitlines()

print(json.dumps([lines(call) for call in json.loads(sys.argv[1])]))
"""


def test_a_mistake_in_an_interpreter_is_at_most_15_lines_without_those_of_hydra(tmp_path):
    """In one of its own: the tests check the types of arguments, which adds lines."""
    environment = {**os.environ, "GPBENCH_RESULTS": str(SEP)}
    words = [sys.executable, "-c", _LINES, json.dumps(WRONG)]
    run = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    for call, lines in zip(WRONG, json.loads(run.stdout), strict=True):
        assert lines[-1].startswith(("gpbench.errors.", "ValueError: ")) and len(lines) <= 15, (call, lines)
        assert not any("hydra" in line for line in lines), (call, lines)


ROWS = {
    "a text that is no file": ("abc", "abc: the file cannot be read"),
    "an empty text": ("", "cannot be read"),
    "nothing": (None, "X has the shape ()"),
    "no rows": (np.zeros((0, 1)), "X has no rows"),
    "an empty list": ([], "X has the shape (0,)"),
    "another number of columns": (np.zeros((2, 3)), "X has the shape (2, 3); rows of sinc have 1 inputs"),
    "one dimension": (np.zeros(4), "X has the shape (4,)"),
    "three dimensions": (np.zeros((2, 1, 1)), "X has the shape (2, 1, 1)"),
    "NaN": (np.array([[np.nan]]), "1 missing or infinite cells"),
    "infinity": ([[float("inf")]], "1 missing or infinite cells"),
    "texts": ([["a"]], "X is no array of numbers (T, 1)"),
    "rows of several lengths": ([[1.0], [1.0, 2.0]], "X is no array of numbers (T, 1)"),
    "a mapping": ({"x": [1.0]}, "X: the columns of a builtins.dict cannot be read"),
    "a frame of texts": (pd.DataFrame({"x1": ["a"]}), "'a' is not a number"),
    "an empty frame": (pd.DataFrame({"x": []}), "the table has no rows"),
    "a series": (pd.Series([1.0, 2.0]), "X has the shape (2,)"),
}


@pytest.mark.parametrize(("rows", "message"), ROWS.values(), ids=ROWS)
def test_rows_that_cannot_be_predicted_are_one_line(model, rows, message):
    with pytest.raises(gpbench.GpbenchError, match=re.escape(message)) as caught:
        model.predict(rows)
    assert "\n" not in str(caught.value)
    with pytest.raises(gpbench.ConfigError, match="return_std='yes': must be True or False"):
        model.predict(rows, return_std="yes")
