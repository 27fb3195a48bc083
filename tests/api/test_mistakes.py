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
    "run(config_dir='nowhere')": "^config_dir .*nowhere: no such folder",
    "run(overrides=[1])": "overrides=[1]: must be a list, each entry a text",
    "run(method=['logistic', 'linear'])": "call gpbench.multirun",
    "run('sep')": "run: too many positional arguments",
    'run(method="it\'s\\\\")': "no such method",
    "run(dataset=np.array(['pima', 'heart']))": "call gpbench.multirun",
    "run(split='0,1')": "split=0,1: must be",
    "run(overrides=['split=0,1'])": "split=0,1 is a sweep: call gpbench.multirun, or write a list",
    "run(overrides=['='])": "no key ''; known are",
    "run(method__inducing=float('inf'))": "method.inducing=inf: must be",
    "run(method__inducing={1, 2})": "method.inducing=[1, 2]: must be",
    "run(method__nothing__at_all=1)": "no key 'nothing' in method",
    "run(**{'a b': 1})": "cannot read 'a b=1'",
    "run(run__jobs=2)": "run.jobs=2: these are the processes of a sweep: call gpbench.multirun, or leave the word out",
    "run(method='linear', overrides=['method=sep'])": "method is given twice, method=linear and method=sep: leave",
    "table('heart')": "no experiment 'heart'; it is a data set: give dataset=heart",
    "ls('methods', results='nowhere')": "methods are in no results folder: leave it out",
    "run(overrides=['hydra/launcher=slurm'])": "only sweeps have a launcher: call gpbench.multirun, or leave it out",
    "load('sinc', overrides=['dataset=heart'])": "dataset is given twice, dataset=sinc and dataset=heart",
    "multirun(jobs=2, run__jobs=3)": "run.jobs is given twice, run.jobs=3 and run.jobs=2",
    "run(run__results='b', results='a')": "results and run.results both name the results folder",
    "run(method__steps=1, **{'method.steps': 2})": "method.steps is given twice",
    "multirun(jobs='two')": "jobs='two': must be a whole number",
    "table(metrics='nll')": "no argument 'metrics'; did you mean metric?",
    "table('sep/table1', metric='nll')": "^metric: sep/table1 says itself",
    "compare('sep')": "compare: missing a required argument: 'b'",
    "verify('sep', protocol='cleen')": "no protocol 'cleen'; did you mean clean?",
    "load('\\0')": "dataset='\\x00': has a null character",
    "table(results=['a', 'b\\0'])": "results=['a', 'b\\x00']: has a null character",
    "load('sinc').split('a')": "split: number='a': must be a whole number",
    "load('sinc').split(99)": "split",
    "load('sinc').split(0, output=1)": "output=1: sinc has one output only",
    "load('sinc').split(0, output='y')": "output='y': must be a whole number or None",
    "load_run('xyz')": "xyz",
    "best()": "say task, one of",
    "best(task='regresion')": "did you mean regression",
    "best(task='binary', rows='many')": "30k-60k",
    "best(task='binary', rows='9-2')": "larger than its last",
    "best(task='binary', rows=-5)": 'rows=-5: a number of rows is 0 or more; up to 5 is "-5", a text',
    "best(task='binary', protocol='hl2016', metric='nlll')": "did you mean nll",
    "best(task='regression', inputs='100-')": "no recorded run",
    "best(data='bostn')": "did you mean boston",
    "best(data='boston', task='binary')": "boston is of the task regression, not binary",
    "frame(results='nowhere')": "nowhere",
    "frame(long='yes')": "long='yes': must be True or False",
}


def test_a_wrong_argument_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call, message in CALLS.items():
        monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path if call.startswith(("run", "multirun", "load")) else SEP))
        with pytest.raises(gpbench.GpbenchError) as caught:
            eval(f"gpbench.{call}", {"gpbench": gpbench, "np": np})
        line = str(caught.value)
        assert "\n" not in line and "--config-dir" not in line, call
        assert re.search(message if message.startswith("^") else re.escape(message), line), (call, line)


WRONG = ("run(method='seb')", "run(method__inducng=3)", "run(split=99)", "run(dataset='no.csv', target='y')")
WRONG += ("multirun(method=['sep', 'seb'])", "load('hart')", "load_run('zzzz')", "table('sep/tabel1')")
WRONG += ("compare('sep', 'sv')", "frame('nowhere')", "Regressor('sviii').fit([[1.0], [2.0]], [1.0, 2.0])")
WRONG += ("Classifier(options={'method.indcing': 3}).fit([[1.0], [2.0]], [0, 1])",)
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
    "nothing": (None, "X has the shape ()"),
    "no rows": (np.zeros((0, 1)), "X has no rows"),
    "another number of columns": (np.zeros((2, 3)), "X has the shape (2, 3); rows of sinc have 1 inputs"),
    "texts": ([["a"]], "X is no array of numbers (T, 1)"),
    "an empty frame": (pd.DataFrame({"x": []}), "the table has no rows"),
}


def test_rows_that_cannot_be_predicted_are_one_line(tmp_path):
    saved = gpbench.run(**LINEAR, run__save=True, results=tmp_path)[0].id
    model = gpbench.load_run(saved, results=tmp_path)
    for name, (rows, message) in ROWS.items():
        with pytest.raises(gpbench.GpbenchError, match=re.escape(message)) as caught:
            model.predict(rows)
        assert "\n" not in str(caught.value), name
    with pytest.raises(gpbench.ConfigError, match="return_std='yes': must be True or False"):
        model.predict([[0.0]], return_std="yes")
