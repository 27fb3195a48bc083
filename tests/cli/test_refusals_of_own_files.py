"""A dry run refuses what is wrong in a user's classes and files."""

import contextlib
import io
import subprocess
import sys

import pytest

from gpbench import cli
from gpbench.config.build import build_method, check_class
from gpbench.config.compose import Composer
from gpbench.errors import ConfigError
from gpbench.sweep import classes

CLASS = """
from gpbench.methods.base import Method
from gpbench.schema import setting


class Own(Method):
    tasks = frozenset({"binary"})
    features: int = setting(10, "count", "Number of features.")
    alpha: int = setting(2, "count", "Number of letters.")
    noise: int = 3
    temperature: float = setting(1.0, "positive", "Temperature.")
    mode: str = setting("hot", ["hot", "cold"], "Mode.")
    kernel: str = setting("of_mine", "text", "Not a kernel of gpbench's.")
    likelihood: str = setting("auto", "likelihood", "Likelihood.")
    depth: int = 3

    def init(self, data, *, key):
        return data.X

    def step(self, state, batch, *, key):
        return state

    def predict(self, state, X, *, key):
        return X
"""


def users_class(folder):
    """A folder of --config-dir with the class above; the options that choose it."""
    (folder / "method").mkdir()
    content = "_target_: own_method.Own\nname: own\nfeatures: 10\ntemperature: 1.0\nmode: hot\nkernel: of_mine\n"
    (folder / "method" / "own.yaml").write_text(f"{content}likelihood: auto\nsteps: 1\n")
    (folder / "own_method.py").write_text(CLASS)
    return ["--config-dir", str(folder), "method=own", f"run.results={folder / 'results'}"]


def test_a_users_class_is_checked_by_its_declarations(tmp_path, monkeypatch):
    options = users_class(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    cfg = Composer([tmp_path]).compose(["dataset=wdbc", options[2]])
    check_class(cfg["method"], cfg["dataset"])
    wrong = [("features", 0), ("features", "rff"), ("temperature", 0), ("mode", "warm"), ("steps", -1), ("deepth", 3)]
    wrong += [("likelihood", "probitt"), ("likelihood", {"probit": {"nodes": 0}}), ("depth", "deep")]
    for name, value in [*wrong, ("search", {"mode": [1]})]:
        with pytest.raises(ConfigError, match=rf"^method\.{name}\b"):
            check_class({**cfg["method"], name: value})
    with pytest.raises(ConfigError, match="method own is for binary data"):
        check_class(cfg["method"], {"name": "boston", "task": "regression"})


def test_names_of_ours_mean_in_a_users_class_what_it_declares(tmp_path, monkeypatch):
    options = users_class(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    # alpha is a fraction in our methods, features a choice and noise a positive number
    words = ["dataset=wdbc", options[2], "+method.alpha=7", "+method.noise=-1"]
    method = build_method(Composer([tmp_path]).compose(words)["method"])
    assert (method.alpha, method.features, method.noise) == (7, 10, -1)
    assert all(isinstance(value, int) for value in (method.alpha, method.noise))


def test_a_users_class_is_checked_before_any_job_starts(tmp_path, streams):
    options = users_class(tmp_path)
    for words, code in (
        (["--dry-run"], 0),
        (["--dry-run", "method.mode=warm"], 2),
        (["-m", "method.features=1,0"], 2),
        (["--cfg", "+method.ranges={mode: any}"], 2),
    ):
        out, err = streams("run", words[0], *options, "dataset=wdbc", *words[1:], code=code)
        assert not (tmp_path / "results").exists()
        assert code == 0 or (out == "" and err.startswith("gpbench: method.") and err.count("\n") == 1)


FILES = {
    "kernel/wave.yaml": "_target_: dry_parts.Wave\nperiod: 6.0\n",
    "likelihood/noisy.yaml": "_target_: dry_parts.Noisy\n",
    "dry_parts.py": """
from gpbench.core.kernels import SquaredExponential
from gpbench.core.likelihoods import Gaussian
from gpbench.methods.exact.gpr import GPR
from gpbench.schema import setting


class Wave(SquaredExponential):
    period: float = setting(1.0, "positive", "Period.")


class Typo(SquaredExponential):
    period: float = setting(1.0, "positve", "Period.")


class Noisy(Gaussian):
    level: float = setting(0.5, "fraction", "Level.")


class Outside(GPR):
    level: float = setting(2.0, "fraction", "Level.")


class Task(GPR):
    tasks = frozenset({"regresion"})


class Text(GPR):
    tasks = "regression"
""",
    "dry_loss.py": "def loss(scored, level=0.5):\n    return 0.0\n",
}


METRIC = "_target_: dry_loss.loss\nbetter: lower\ntasks: [regression]\n"


CUSTOM = {
    "fits": (["method.kernel=wave", "method.likelihood=noisy"], METRIC, ""),
    "option of a kernel": (["method.kernel={wave: {perod: 2}}"], "", "has no option 'perod': did you mean period?"),
    "class of a kernel": (["method.kernel={_target_: dry_parts.Wav}"], "", "dry_parts has no 'Wav'; did you mean Wave"),
    "module of a kernel": (["method.kernel={_target_: dry_partz.Wave}"], "", "no module 'dry_partz'; did you mean dry"),
    "far module": (["method.kernel={_target_: quux.Wave}"], "", "name the folder that has it with --config-dir"),
    "range of a kernel": (["method.kernel={_target_: dry_parts.Typo}"], "", "period: no range 'positve'; did you mean"),
    "default": (["method._target_=dry_parts.Outside"], "", "Outside.level: the default=2.0: must be a number above 0"),
    "task": (["method._target_=dry_parts.Task"], "", "Task: no task 'regresion'; did you mean regression?"),
    "tasks": (["method._target_=dry_parts.Text"], "", "Text: tasks must be a tuple, such as tasks = ('regression',)"),
    "class": (["method._target_=dry_parts.Noisy"], "", "method: dry_parts.Noisy is no gpbench.Method: derive its"),
    "function of a metric": ([], METRIC.replace("loss.loss", "loss.los"), "dry_loss has no 'los'; did you mean loss?"),
    "option of a metric": ([], METRIC + "levle: 0.9\n", "argument 'levle'; did you mean level?"),
    "job of a sweep": (["-m", "seed=0", "method.kernel=linear,{wave: {period: 0}}"], "", "(job method.kernel={wave:"),
}


@pytest.fixture(scope="module")
def custom(tmp_path_factory, new_file):
    """A folder of --config-dir with the files above, on the path of this process."""
    folder = tmp_path_factory.mktemp("custom")
    for name, content in FILES.items():
        new_file(folder / name, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder


def in_this_process(command, *, input, **_):
    """What the process of the check says, without its start."""
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(input))
        return subprocess.CompletedProcess(command, classes.main(), out.getvalue())


def test_a_dry_run_refuses_what_is_wrong_in_a_users_files(custom, tmp_path, capsys, monkeypatch):
    (tmp_path / "metric").mkdir()
    ours, argv = tmp_path / "metric" / "ours.yaml", ["run", "--dry-run", f"run.results={tmp_path / 'r'}"]
    argv += [f"--config-dir={custom}", f"--config-dir={tmp_path}", "dataset=sinc"]
    for name, (words, metric, message) in CUSTOM.items():
        ours.write_text(metric) if metric else ours.unlink(missing_ok=True)
        method = "method=gpr" if "method._target_" in str(words) else "method=svi"
        with monkeypatch.context() as patch:
            if words and words[0] != "-m":
                patch.setattr(classes.subprocess, "run", in_this_process)
            assert cli.main([*argv, method, *words]) == (2 if message else 0), name
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == bool(message), name
