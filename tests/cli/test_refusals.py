"""Wrong words of `gpbench run`, values out of range and keys that nothing reads: one line, before JAX is imported."""

import json
import subprocess
import sys

import pytest
from commands import FAKES, RUN, environment, gpbench

from gpbench import cli, runtime
from gpbench.config.compose import Composer
from gpbench.errors import ConfigError
from gpbench.experiments.plan import plans

REFUSED = {
    "method.inducing=1.5": "method.inducing=1.5: must be a whole number from 1, or a number above 0 and up to 1",
    "seed=99999999999999999999": "seed=99999999999999999999: must be a whole number from 0 to 4294967295",
    "method=[sep,svi]": "method=[sep,svi]: dataset, method and protocol each take a name",
    "+method.optimiser={_target_: optax.adm}": "method.optimiser: optax has no 'adm'; did you mean adam",
    "method.start=foo": "method.start=foo: must be rows, kmeans or greedy",
    "protocol.precision=float16": "protocol.precision=float16: must be float64 or float32",
    "protocol.optimiser.start=-1": "optimiser.start=-1: must be a number above 0",
    "+method.new=inf": "method.new=inf: must be finite",
    "method.kernel={sum: [linear, rbf]}": "method.kernel: unknown kernel 'rbf': known are",
    "method.kernel=[linear]": "a kernel is a name or a name with its options",
    "method.likelihood=poisson": "or logistic; methods with poisson are dgp, dkl, gam, ivsgpr, ppgpr, svgp, svi, ",
    "optimiser=adm": "no key 'optimiser'; did you mean method.optimiser or protocol.optimiser?",
    "method.optimiser=adm": "method.optimiser=adm: must be a mapping with the optimiser's _target_",
    "+method.subset_rows=1": "method.subset_rows: SEP has no such field",
    "+dataset.splits.train_rows=40": "dataset: splits.train_rows=40: the split set random90 does not read it",
    "+dataset.splits.rows=40": "dataset: splits has an unknown key 'rows'",
    "+dataset.colums=[a]": "dataset: the card has an unknown key 'colums'; did you mean columns or counts?",
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
    own = {"cwd": tmp_path, "env": environment(tmp_path, fake=False), "input": json.dumps(list(REFUSED))}
    done = subprocess.run([sys.executable, "-c", program], **own, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for (word, line), (code, err) in zip(REFUSED.items(), json.loads(done.stdout), strict=True):
        assert code == 2 and line in err and err.startswith("gpbench: ") and err.count("\n") == 1, word


@pytest.mark.parametrize(
    "word", ["method.inducing=4,1.5", "method.kernel=linear,linaer", "dataset.splits.set=a,random90", "method=svi,gpr"]
)
def test_a_later_job_of_a_sweep_is_refused_before_the_first_starts(tmp_path, word):
    code, out, err = gpbench(tmp_path, "run", "-m", "dataset=moons", word, fake=False)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_declared_setting_that_a_file_lacks_needs_no_plus_and_a_protocol_a_name_only(tmp_path, capsys, new_file):
    new_file(tmp_path / "method" / "mine.yaml", "_target_: robust_gp.RobustGP\nname: mine\n")
    composer = Composer([tmp_path])
    cfg = composer.compose(["dataset=sinc", "method=mine", "method.batch_size=20"])
    assert cfg == composer.compose(["dataset=sinc", "method=mine", "+method.batch_size=20"])
    with pytest.raises(ConfigError, match=r"no key 'df' in method; .*; \+method\.df=VALUE sets a field"):
        composer.compose(["dataset=sinc", "method=mine", "method.df=3"])
    new_file(tmp_path / "protocol" / "bare.yaml", "name: bare\n")
    words = ["dataset=sinc", "method=linear", "protocol=bare"]
    cfg = Composer([tmp_path]).compose(words)
    rest = {"inputs": "standardise", "targets": "standardise", "recalibrate": None, "precision": "float64"}
    assert cfg["protocol"] == {"name": "bare", **rest} and not cfg["changes"]
    (tmp_path / "protocol" / "bare.yaml").write_text("precision: float32\n")
    with pytest.raises(ConfigError, match="protocol has no name"):
        Composer([tmp_path]).compose(words)


def test_the_wrong_job_of_a_sweep_is_named_and_plans_of_one_point_and_of_all_rows_are_of_two_cells():
    jobs = [["dataset=wdbc", "seed=0", "method=sep"], ["dataset=wdbc", "seed=0", "method=sepp"]]
    with pytest.raises(ConfigError, match=r"no such method; did you mean sep.* \(job method=sepp\)$"):
        plans(jobs)
    one, whole = plans([["method.inducing=1"], ["method.inducing=1.0"]])
    assert one.runs[0].id != whole.runs[0].id and one.runs[0].cell != whole.runs[0].cell
    assert (one.cfg["changes"], whole.cfg["changes"]) == ({"method.inducing": 1}, {"method.inducing": 1.0})
    linear, same = plans([["method=logistic", "method.ridge=1"], ["method=logistic", "method.ridge=1.0"]])
    assert linear.runs[0].id == same.runs[0].id  # a field of real numbers
    assert not linear.cfg["changes"] and not same.cfg["changes"]


def test_a_mistake_is_one_line_and_cfg_refuses_what_a_run_refuses(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(FAKES))
    monkeypatch.setattr(runtime, "configure", lambda **_: None)  # it would change the environment of the other tests
    for name, (words, line) in MISTAKES.items():
        keys = {word.partition("=")[0].lstrip("+") for word in words}
        usual = [word for word in RUN if "=" not in word or word.partition("=")[0] not in keys]
        assert cli.main([*usual, *words]) == 2, name
        err = capsys.readouterr().err
        assert line in err and err.startswith("gpbench: ") and err.count("\n") == 1, name
    fits = ["inducing=1", "inducing=1.0", "kernel={sum: [linear, matern32]}", "likelihood={logistic: {nodes: 40}}"]
    words = {**dict.fromkeys([f"method.{word}" for word in fits] + ["seed=4294967295"], 0), "method.inducing=1.5": 2}
    assert {word: cli.main(["run", "--cfg", "dataset=wdbc", word]) for word in words} == words


MISTAKES = {
    "unknown choice": (["method=fakee"], "method=fakee: no such method; did you mean fake?"),
    "unknown choice among many": (["method=nosuch"], " more: `gpbench ls methods` lists them all"),
    "unknown group": (["metod=fake"], "no key 'metod'; did you mean method?"),
    "unknown key of the method": (["method.fat=done"], "no key 'fat' in method; did you mean fate?"),
    "unknown key that was added": (["+run.job=3"], "no key run.job; did you mean run.jobs"),
    "key of another protocol": (["protocol.split_indices=int8"], "in protocol; it is one of protocol=bui2016"),
    "key below a value": (["method.fate.x=3"], "no key 'x' in method.fate; it has none of its own"),
    "field the constructor lacks": (["+method.poitns=3"], "method.poitns: Fake has no such field; did you mean points"),
    "field outside its choices": (["method.fate=dne"], "method.fate=dne: must be done, diverged, error, "),
    "class that cannot be imported": (["method._target_=no.Such"], "method: cannot import 'no.Such'"),
    "unclosed list": (["split=[0,1"], "cannot read 'split=[0,1'"),
    "sweep without -m": (["split=0,1"], "split=0,1 is a sweep: add -m, or write a list"),
    "more jobs than fit a list": (["-m", "seed=range(0,1000000000000)"], "has more than 100,000 jobs; give seed fewer"),
    "range of no values": (["-m", "seed=range(1,0)"], "seed=range(1,0) has no values"),
    "missing mandatory value": (["seed=???"], "seed: no value is set"),
    "interpolation to nowhere": (["method.points=${protocol.stepz}"], "Interpolation key 'protocol.stepz'"),
    "split that is a word": (["split=foo"], "split=foo: must be a number from 0, a list"),
    "split named twice": (["split=[0,0]"], "split=[0, 0]: must be"),
    "flag that is a word": (["run.again=maybe"], "run.again=maybe: must be true or false"),
    "no jobs": (["run.jobs=0"], "run.jobs=0: must be a whole number from 1"),
    "unknown device": (["run.device=tpu"], "run.device=tpu: must be cpu, gpu or null"),
    "section replaced by a value": (["run=3"], "run=3: is a section"),
    "group deleted": (["~method"], "method is not set; choose one"),
    "name without its key": (["heart"], "cannot read 'heart'; did you mean dataset=heart?"),
    "key of a section without its name": (["device=cpu"], "no key 'device'; did you mean run.device?"),
    "key of an optimiser": (
        ["method=svi", "protocol=clean", "method.learning_rate=1"],
        "did you mean method.optimiser.",
    ),
    "beginning of a name": (["dataset=mnist"], "dataset=mnist: no such data set; did you mean mnist_odd_even?"),
    "experiment": (["experiment=sep/table1"], "choose a file; `gpbench reproduce ID` runs an experiment"),
    "choice into a package": (["+dataset@more=heart"], "+dataset@more=heart: only dataset, method and protocol choose"),
    "choice that is added": (["+dataset=heart"], "+dataset=heart: write dataset=heart, without +"),
    "section deleted": (["~run"], "~run: run cannot be removed; set another value, or leave the word out"),
    "jobs without -m": (["run.jobs=4"], "run.jobs=4: these are the processes of a sweep: add -m, or leave the"),
    "option for a word": (["--dataset", "heart"], "--dataset; settings are words, as in dataset=heart run.jobs=2; see"),
    "key given twice": (["seed=1", "seed=2"], "seed=1 and seed=2: leave one out, or write seed=1,2 and add -m"),
    "key given twice, added once": (["run.jobs=1", "+run.jobs=2"], "jobs is given twice, run.jobs=1 and +run.jobs=2"),
    "configuration of a sweep": (["--cfg", "-m", "seed=1,2"], "--cfg is for one job, without -m; --dry-run lists the"),
    "key given twice in a sweep": (["-m", "seed=1,2", "seed=3"], "leave one out, or write seed=1,2,3\n"),
    "folder of Hydra's": (["hydra.run.dir=here"], "hydra.run.dir=here: gpbench reads only hydra/launcher=NAME and"),
    "launcher without -m": (["hydra/launcher=slurm"], "hydra/launcher=slurm: only sweeps have a launcher: add -m"),
    "no such folder": (["--config-dir", "nowhere"], "nowhere: no such folder"),
}


def test_a_faulty_file_stops_only_runs_that_use_it_and_an_extended_method_keeps_its_name(tmp_path, printed, streams):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "heart.yaml").write_text("name: [")
    streams("run", "--cfg", "dataset=moons", "--config-dir", tmp_path)
    listed = streams("ls", "datasets", "--config-dir", tmp_path, code=2)
    assert "wdbc" in listed.out and "heart.yaml, line 1: not YAML" in listed.err
    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "longer.yaml").write_text("defaults: [logistic, _self_]\nsteps: 70")
    assert "name: logistic" in printed("run", "--cfg", "method=longer", "--config-dir", tmp_path)


def test_a_file_whose_name_is_not_that_of_its_runs_is_refused(tmp_path, capsys, new_file):
    texts = {
        "dataset": ("yours", "name: yours\ntask: binary\nsources: [{kind: file, path: a, target: y}]"),
        "method": ("yours", "defaults: [logistic, _self_]\nname: yours"),
        "protocol": ("clean", "defaults: [clean, _self_]"),
    }
    for group, (name, text) in texts.items():
        new_file(tmp_path / group / "mine.yaml", text)
        assert cli.main(["run", "--dry-run", f"{group}=mine", "--config-dir", str(tmp_path)]) != 0
        assert f"mine.yaml: name: {name} is not the file's name" in "".join(capsys.readouterr())
