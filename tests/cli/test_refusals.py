"""A value out of its range, or a key that nothing reads, is refused in one line before JAX is imported."""

import contextlib
import io
import json
import subprocess
import sys

import pytest
from commands import environment, gpbench

from gpbench import cli
from gpbench.config.compose import Composer
from gpbench.errors import ConfigError
from gpbench.experiments.plan import plans
from gpbench.sweep import classes

REFUSED = {
    "method.inducing=1.5": "method.inducing=1.5: must be a whole number from 1, or a number above 0 and up to 1",
    "method.inducing=0": "method.inducing=0: must be",
    "method.inducing=-3": "method.inducing=-3: must be",
    "method.inducing=nan": "method.inducing=nan: must be",
    "method.inducing=true": "method.inducing=true: must be",
    "method.inducing=many": "method.inducing=many: must be",
    "method.steps=-1": "method.steps=-1: must be a whole number from 1",
    "method.steps=0": "method.steps=0: must be a whole number from 1",
    "method.steps=1.5": "method.steps=1.5: must be",
    "protocol.steps=-1": "method.steps=-1: must be",
    "method.noise=-1": "method.noise=-1: must be a number above 0",
    "method.noise=inf": "method.noise=inf: must be",
    "method.damping=7": "method.damping=7: must be a number above 0 and up to 1",
    "method.damping=nan": "method.damping=nan: must be",
    "protocol.minibatch_damping=0": "protocol.minibatch_damping=0: must be",
    "protocol.target_noise=0": "protocol.target_noise=0: must be a number above 0",
    "seed=99999999999999999999": "seed=99999999999999999999: must be a whole number from 0 to 4294967295",
    "method.batch_size=0": "method.batch_size=0: must be a whole number from 1, or null",
    "method=[sep,svi]": "method=[sep,svi]: dataset, method and protocol each take a name",
    "+method.optimiser={_target_: optax.adm}": "method.optimiser: optax has no 'adm'; did you mean adam",
    "method.start=foo": "method.start=foo: must be rows, kmeans or greedy",
    "method.update=foo": "method.update=foo: must be inner or outer",
    "method.lengthscale_start=foo": "method.lengthscale_start=foo: must be median, root_median or median_each",
    "+method.rates=[0.1,0]": "method.rates=[0.1, 0]: must be a list, each entry a number above 0",
    "protocol.precision=float16": "protocol.precision=float16: must be float64 or float32",
    "protocol.inputs=whiten": "protocol.inputs=whiten: must be standardise, unit_interval, centre_all or none",
    "protocol.optimiser.start=-1": "optimiser.start=-1: must be a number above 0",
    "protocol.optimiser.up=inf": "optimiser.up=inf: must be a number above 0",
    "+method.new=inf": "method.new=inf: must be finite",
    "run.time_limit=nan": "run.time_limit=nan: must be",
    "method.kernel=matern53": "method.kernel: unknown kernel 'matern53': did you mean matern52",
    "method.kernel={sum: [linear, rbf]}": "method.kernel: unknown kernel 'rbf': known are",
    "method.kernel=[linear]": "a kernel is a name or a name with its options",
    "method.likelihood=poisson": "or logistic; methods with poisson are dgp, gam, ivsgpr, svgp, svi, ",
    "optimiser=adm": "no key 'optimiser'; did you mean method.optimiser or protocol.optimiser?",
    "method.optimiser=adm": "method.optimiser=adm: must be a mapping with the optimiser's _target_",
    "protocol.optimiser=adm": "optimiser=adm: must be a mapping with",
    "+method.subset_rows=1": "method.subset_rows: SEP has no such field",
    "method.likelihood=probitt": "method.likelihood: unknown likelihood 'probitt': did you mean probit?",
    "+dataset.splits.train_rows=40": "dataset: splits.train_rows=40: the split set random90 does not read it",
    "+dataset.splits.rows=40": "dataset: splits has an unknown key 'rows'",
    "dataset.splits.set=randm90": "dataset: no split set 'randm90'; did you mean random90",
    "+dataset.colums=[a]": "dataset: the card has an unknown key 'colums'; did you mean columns or counts?",
    "+dataset.incomplete=dropp": "dataset: the card: incomplete=dropp: must be drop or null",
    "++methd.steps=20": "++methd.steps=20: no such section; did you mean method?",
    "+foo=1": "+foo=1: no such section; known are data, dataset, method",
    "dataset.name=pima": "dataset.name=pima: a name is that of its file; choose one by dataset=NAME",
    "method.name=../x": "method.name=../x: a name is that of its file; choose one by method=NAME",
    "method={name: x}": "method.name=x: a name is that of its file",
    "++protocol.name=hl2016": "protocol.name=hl2016: a name is that of its file; choose one by protocol=NAME",
    "dataset.labels.malignant=-1.5": "dataset: the code of label 'malignant'=-1.5: must be a whole number",
}


def test_what_is_refused_is_one_line_without_jax(tmp_path):
    program = (
        "import sys, json, contextlib, io\nfrom gpbench import cli\n"
        "def line(word):\n"
        "    with contextlib.redirect_stderr(io.StringIO()) as err:\n"
        "        code = cli.main(['run', 'dataset=wdbc', word])\n"
        "    return [code, err.getvalue()]\n"
        "print(json.dumps([line(word) for word in json.load(sys.stdin)]))\n"
        "assert not {'jax', 'numpy'} & sys.modules.keys()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(tmp_path, fake=False),
        input=json.dumps(list(REFUSED)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for (word, line), (code, err) in zip(REFUSED.items(), json.loads(done.stdout), strict=True):
        assert line in err and err.startswith("gpbench: ") and err.count("\n") == 1, word
        assert code == 2, word


@pytest.mark.parametrize(
    "word", ["method.inducing=4,1.5", "method.kernel=linear,linaer", "dataset.splits.set=a,random90"]
)
def test_a_later_job_of_a_sweep_is_refused_before_the_first_starts(tmp_path, word):
    code, out, err = gpbench(tmp_path, "run", "-m", "dataset=moons", word, fake=False)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["plot", "sep/fig2", "--metric", "nll"], "--metric is for runs, and not for figures: leave it out"),
        (["plot", "sep/fig2", "--kind", "all"], "--kind is for runs, and not for figures: leave it out"),
        (["plot", "--last", "--preset", "full"], "--preset is for figures, and not for runs: leave it out"),
        (["plot", "3f2a", "--all-settings"], "--all-settings is for figures, and not for runs: leave it out"),
        (["plot", "printed", "--metric", "nll"], "--metric is for runs, and not for printed: leave it out"),
        (["plot", "printed", "--preset", "full"], "--preset is for figures, and not for printed: leave it out"),
        (["check", "kernel:cosine", "--rows", "40"], "--rows: kernel:cosine is no method; leave the option out"),
        (["run", "-m", "--json"], "--json is for one job, without -m; `gpbench ls runs --json` lists"),
        (["run", "run.processes=2", "--plot", "all"], "--plot is for runs of one process: leave it out"),
        (["table", "--later", "--json"], "later papers are listed on the terminal; leave out --json"),
        (["table", "--later", "--format", "md"], "are listed on the terminal; leave out --format md"),
    ],
)
def test_an_option_that_would_not_be_read_is_refused(words, line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == 2
    err = capsys.readouterr().err
    assert line in err and err.count("\n") == 1 and not [*tmp_path.iterdir()]


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


@pytest.mark.parametrize(
    "changes",
    [
        {"features": 0},
        {"features": "rff"},
        {"temperature": 0},
        {"mode": "warm"},
        {"steps": -1},
        {"likelihood": "probitt"},
        {"likelihood": {"probit": {"nodes": 0}}},
        {"depth": "deep"},
        {"deepth": 3},
        {"search": {"mode": [1]}},
    ],
    ids=str,
)
def test_a_users_class_is_checked_by_its_declarations(tmp_path, monkeypatch, changes):
    from gpbench.config.build import check_class

    options = users_class(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    cfg = Composer([tmp_path]).compose(["dataset=wdbc", options[2]])
    check_class(cfg["method"], cfg["dataset"])
    with pytest.raises(ConfigError, match=rf"^method\.{next(iter(changes))}\b"):
        check_class({**cfg["method"], **changes})
    with pytest.raises(ConfigError, match="method own is for binary data"):
        check_class(cfg["method"], {"name": "boston", "task": "regression"})


def test_names_of_ours_mean_in_a_users_class_what_it_declares(tmp_path, monkeypatch):
    from gpbench.config.build import build_method

    options = users_class(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    # alpha is a fraction in our methods, features a choice and noise a positive number
    words = ["dataset=wdbc", options[2], "+method.alpha=7", "+method.noise=-1"]
    method = build_method(Composer([tmp_path]).compose(words)["method"])
    assert (method.alpha, method.features, method.noise) == (7, 10, -1)
    assert all(isinstance(value, int) for value in (method.alpha, method.noise))


@pytest.mark.parametrize(
    "words, code",
    [
        (["--dry-run"], 0),
        (["--dry-run", "method.mode=warm"], 2),
        (["-m", "method.features=1,0"], 2),
        (["--cfg", "+method.ranges={mode: any}"], 2),
    ],
    ids=str,
)
def test_a_users_class_is_checked_before_any_job_starts(tmp_path, words, code, capsys):
    options = users_class(tmp_path)
    assert cli.main(["run", words[0], *options, "dataset=wdbc", *words[1:]]) == code
    captured = capsys.readouterr()
    assert not (tmp_path / "results").exists()
    if code:
        assert captured.out == "" and captured.err.startswith("gpbench: method.") and captured.err.count("\n") == 1


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
    "value of a kernel": (["method.kernel={sum: [linear, {wave: {period: -6}}]}"], "", "period=-6: must be"),
    "option of a likelihood": (["method.likelihood={noisy: {levle: 1}}"], "", "has no option 'levle': did you mean"),
    "class of a kernel": (["method.kernel={_target_: dry_parts.Wav}"], "", "dry_parts has no 'Wav'; did you mean Wave"),
    "module of a kernel": (
        ["method.kernel={_target_: dry_partz.Wave}"],
        "",
        "no module 'dry_partz'; did you mean dry_parts",
    ),
    "far module": (["method.kernel={_target_: quux.Wave}"], "", "name the folder that has it with --config-dir"),
    "range of a kernel": (
        ["method.kernel={_target_: dry_parts.Typo}"],
        "",
        "Typo.period: no range 'positve'; did you mean",
    ),
    "default": (["method._target_=dry_parts.Outside"], "", "Outside.level: the default=2.0: must be a number above 0"),
    "task": (["method._target_=dry_parts.Task"], "", "Task: no task 'regresion'; did you mean regression?"),
    "tasks": (["method._target_=dry_parts.Text"], "", "Text: tasks must be a tuple, such as tasks = ('regression',)"),
    "class": (["method._target_=dry_parts.Noisy"], "", "method: dry_parts.Noisy is no gpbench.Method: derive its"),
    "built-in class": (
        ["method.kernel={_target_: gpbench.core.kernels.Periodic, perod: 3}"],
        "",
        "'perod': did you mean",
    ),
    "function of a metric": ([], METRIC.replace("loss.loss", "loss.los"), "dry_loss has no 'los'; did you mean loss?"),
    "option of a metric": ([], METRIC + "levle: 0.9\n", "argument 'levle'; did you mean level?"),
    "job of a sweep": (["-m", "seed=0", "method.kernel=linear,{wave: {period: 0}}"], "", "(job method.kernel={wave:"),
}


@pytest.fixture(scope="module")
def custom(tmp_path_factory):
    """A folder of --config-dir with the files above, on the path of this process."""
    folder = tmp_path_factory.mktemp("custom")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder


def in_this_process(command, *, input, **_):
    """What the process of the check says, without its start."""
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(input))
        return subprocess.CompletedProcess(command, classes.main(), out.getvalue())


@pytest.mark.parametrize(("words", "metric", "message"), CUSTOM.values(), ids=CUSTOM)
def test_a_dry_run_refuses_what_is_wrong_in_a_users_files(
    custom, tmp_path, capsys, monkeypatch, words, metric, message
):
    if words and words[0] != "-m":
        monkeypatch.setattr(classes.subprocess, "run", in_this_process)
    if metric:
        (tmp_path / "metric").mkdir()
        (tmp_path / "metric" / "ours.yaml").write_text(metric)
    argv = ["run", "--dry-run", f"--config-dir={custom}", f"--config-dir={tmp_path}", "dataset=sinc"]
    argv.append("method=gpr" if "method._target_" in str(words) else "method=svi")
    assert cli.main([*argv, f"run.results={tmp_path / 'r'}", *words]) == (2 if message else 0)
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == bool(message)


def test_a_declared_setting_that_a_file_lacks_needs_no_plus(tmp_path, capsys):
    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "mine.yaml").write_text("_target_: robust_gp.RobustGP\nname: mine\n")
    composer = Composer([tmp_path])
    cfg = composer.compose(["dataset=sinc", "method=mine", "method.batch_size=20"])
    assert cfg == composer.compose(["dataset=sinc", "method=mine", "+method.batch_size=20"])
    with pytest.raises(ConfigError, match=r"no key 'df' in method; .*; \+method\.df=VALUE sets a field"):
        composer.compose(["dataset=sinc", "method=mine", "method.df=3"])


def test_a_protocol_needs_a_name_only(tmp_path):
    (tmp_path / "protocol").mkdir()
    (tmp_path / "protocol" / "bare.yaml").write_text("name: bare\n")
    words = ["dataset=sinc", "method=linear", "protocol=bare"]
    cfg = Composer([tmp_path]).compose(words)
    assert cfg["protocol"] == {
        "name": "bare",
        "inputs": "standardise",
        "targets": "standardise",
        "precision": "float64",
    }
    assert not cfg["changes"]
    (tmp_path / "protocol" / "bare.yaml").write_text("precision: float32\n")
    with pytest.raises(ConfigError, match="protocol has no name"):
        Composer([tmp_path]).compose(words)


def test_the_wrong_job_of_a_sweep_is_named():
    jobs = [["dataset=wdbc", "seed=0", "method=sep"], ["dataset=wdbc", "seed=0", "method=sepp"]]
    with pytest.raises(ConfigError, match=r"no such method; did you mean sep.* \(job method=sepp\)$"):
        plans(jobs)


def test_the_plans_of_one_point_and_all_rows_are_of_two_cells():
    one, whole = plans([["method.inducing=1"], ["method.inducing=1.0"]])
    assert one.runs[0].id != whole.runs[0].id and one.runs[0].cell != whole.runs[0].cell
    assert (one.cfg["changes"], whole.cfg["changes"]) == ({"method.inducing": 1}, {"method.inducing": 1.0})
    linear, same = plans([["method=logistic", "method.ridge=1"], ["method=logistic", "method.ridge=1.0"]])
    assert linear.runs[0].id == same.runs[0].id  # a field of real numbers
    assert not linear.cfg["changes"] and not same.cfg["changes"]


@pytest.mark.parametrize(
    "fits, word",
    [
        (True, "method.inducing=1"),
        (True, "method.inducing=1.0"),
        (True, "method.kernel={sum: [linear, matern32]}"),
        (True, "method.likelihood={logistic: {nodes: 40}}"),
        (True, "seed=4294967295"),
        (True, "method.steps=1"),
        (False, "method.inducing=1.5"),
        (False, "+dataset.splits.test_rows=3"),
    ],
)
def test_cfg_refuses_what_a_run_refuses(fits, word, capsys):
    assert cli.main(["run", "--cfg", "dataset=wdbc", word]) == (0 if fits else 2)


def test_a_setting_that_the_split_set_in_use_does_not_read_is_refused(capsys):
    words = ["run", "--cfg", "dataset=sarcos", "dataset.splits.train_rows=40"]
    assert cli.main(words) == 0
    assert cli.main([*words, "dataset.splits.set=random90"]) == 2
    assert "dataset: splits.train_rows=40: the split set random90 does not read it" in capsys.readouterr().err
    assert cli.main([*words[:3], "dataset.splits.set=random90"]) == 0


def test_one_point_and_all_rows_are_two_settings_from_the_words_to_the_records(tmp_path):
    words = ["run", "--json", "dataset=sinc", "method=vsgpr", "method.steps=1"]
    records = {}
    for inducing in ("1", "1.0"):
        code, out, err = gpbench(tmp_path, *words, f"method.inducing={inducing}", fake=False, timeout=240)
        assert code == 0, err
        outcome = json.loads(out)
        assert outcome["already"] == 0
        (records[inducing],) = outcome["records"]
    one, whole = records["1"], records["1.0"]
    assert one["id"] != whole["id"] and one["cell"] != whole["cell"]
    assert (one["setting"], whole["setting"]) == ("m=1, steps=1", "m=100%, steps=1")
    assert one["metrics"]["rmse"] > whole["metrics"]["rmse"]
    code, out, err = gpbench(tmp_path, "ls", "runs", "--json", fake=False)
    assert {(run["id"], run["setting"]) for run in json.loads(out)} == {(r["id"], r["setting"]) for r in (one, whole)}
