"""A value out of its range, or a key that nothing reads, is refused in one line before JAX is imported."""

import json
import subprocess
import sys

import pytest
from commands import environment, gpbench

from gpbench import cli
from gpbench.config.compose import Composer
from gpbench.errors import ConfigError
from gpbench.experiments.plan import plans

REFUSED = {
    "method.inducing=1.5": "method.inducing=1.5: must be a whole number from 1, or a number above 0 and up to 1",
    "method.steps=-1": "method.steps=-1: must be a whole number from 1",
    "protocol.steps=-1": "method.steps=-1: must be",
    "method.noise=-1": "method.noise=-1: must be a number above 0",
    "method.damping=7": "method.damping=7: must be a number above 0 and up to 1",
    "protocol.minibatch_damping=0": "protocol.minibatch_damping=0: must be",
    "seed=99999999999999999999": "seed=99999999999999999999: must be a whole number from 0 to 4294967295",
    "method.batch_size=0": "method.batch_size=0: must be a whole number from 1, or null",
    "method=[sep,svi]": "method=[sep,svi]: dataset, method and protocol each take a name",
    "+method.optimiser={_target_: optax.adm}": "method.optimiser: optax has no 'adm'; did you mean adam",
    "method.start=foo": "method.start=foo: must be rows, kmeans or greedy",
    "+method.rates=[0.1,0]": "method.rates=[0.1, 0]: must be a list, each entry a number above 0",
    "protocol.precision=float16": "protocol.precision=float16: must be float64 or float32",
    "protocol.inputs=whiten": "protocol.inputs=whiten: must be standardise, unit_interval, centre_all or none",
    "protocol.optimiser.start=-1": "optimiser.start=-1: must be a number above 0",
    "+method.new=inf": "method.new=inf: must be finite",
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
    "word", ["method.inducing=4,1.5", "method.kernel=linear,linaer", "dataset.splits.set=a,random90", "method=svi,gpr"]
)
def test_a_later_job_of_a_sweep_is_refused_before_the_first_starts(tmp_path, word):
    code, out, err = gpbench(tmp_path, "run", "-m", "dataset=moons", word, fake=False)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


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


def test_cfg_refuses_what_a_run_refuses(capsys):
    fits = ["inducing=1", "inducing=1.0", "kernel={sum: [linear, matern32]}", "likelihood={logistic: {nodes: 40}}"]
    words = {**dict.fromkeys([f"method.{word}" for word in fits] + ["seed=4294967295"], 0), "method.inducing=1.5": 2}
    assert {word: cli.main(["run", "--cfg", "dataset=wdbc", word]) for word in words} == words
