"""Every mistake in the words of `gpbench run` is one line with the nearest name, and exit code 2."""

from commands import FAKES, RUN

from gpbench import cli, runtime

MISTAKES = {
    "unknown choice": (["method=fakee"], "method=fakee: no such method; did you mean fake?"),
    "unknown choice among many": (["method=nosuch"], " more: `gpbench ls methods` lists them all"),
    "unknown group": (["metod=fake"], "no key 'metod'; did you mean method?"),
    "unknown key of the method": (["method.fat=done"], "no key 'fat' in method; did you mean fate?"),
    "unknown key that was added": (["+run.job=3"], "no key run.job; did you mean run.jobs"),
    "key of another protocol": (
        ["protocol.split_indices=int8"],
        "no key 'split_indices' in protocol; it is one of protocol=bui2016",
    ),
    "key below a value": (["method.fate.x=3"], "no key 'x' in method.fate; it has none of its own"),
    "field the constructor lacks": (["+method.poitns=3"], "method.poitns: Fake has no such field; did you mean points"),
    "ill-typed field": (["method.points=many"], "method.points=many: must be a whole number or null"),
    "field outside its choices": (["method.fate=dne"], "method.fate=dne: must be done, diverged, error, "),
    "class that cannot be imported": (["method._target_=no.Such"], "method: cannot import 'no.Such'"),
    "not an override": (["foo"], "cannot read 'foo'"),
    "unclosed list": (["split=[0,1"], "cannot read 'split=[0,1'"),
    "sweep without -m": (["split=0,1"], "split=0,1 is a sweep: add -m, or write a list"),
    "more jobs than fit a list": (["-m", "seed=range(0,1000000000000)"], "has more than 100,000 jobs; give seed fewer"),
    "endless range": (["-m", "seed=range(0,inf)"], "has more than 100,000 jobs"),
    "range of no values": (["-m", "seed=range(1,0)"], "seed=range(1,0) has no values"),
    "range without -m": (["split=range(3)"], "split=range(3) is a sweep: add -m"),
    "missing mandatory value": (["seed=???"], "seed: no value is set"),
    "interpolation to nowhere": (["method.points=${protocol.stepz}"], "Interpolation key 'protocol.stepz'"),
    "split that is a word": (["split=foo"], "split=foo: must be a number from 0, a list"),
    "split named twice": (["split=[0,0]"], "split=[0, 0]: must be"),
    "seed that is a word": (["seed=abc"], "seed=abc: must be a whole number from 0"),
    "flag that is a word": (["run.again=maybe"], "run.again=maybe: must be true or false"),
    "no jobs": (["run.jobs=0"], "run.jobs=0: must be a whole number from 1"),
    "unknown device": (["run.device=tpu"], "run.device=tpu: must be cpu, gpu or null"),
    "section replaced by a value": (["run=3"], "run=3: is a section"),
    "group set to nothing": (["method=null"], "dataset, method and protocol each take a name"),
    "group deleted": (["~method"], "method is not set; choose one"),
    "name without its key": (["heart"], "cannot read 'heart'; did you mean dataset=heart?"),
    "key of a section without its name": (["device=cpu"], "no key 'device'; did you mean run.device?"),
    "key of an optimiser": (
        ["method=svi", "protocol=clean", "method.learning_rate=1"],
        "did you mean method.optimiser.learning_rate?",
    ),
    "beginning of a name": (["dataset=mnist"], "dataset=mnist: no such data set; did you mean mnist_odd_even?"),
    "capital letters": (["method=LOGISTIC"], "method=LOGISTIC: no such method; did you mean logistic?"),
    "experiment": (["experiment=sep/table1"], "choose a file; `gpbench reproduce ID` runs an experiment"),
    "experiment that is added": (["+experiment=sep/table1"], "only dataset, method and protocol choose a file"),
    "choice into a package": (["+dataset@more=heart"], "+dataset@more=heart: only dataset, method and protocol choose"),
    "choice that is added": (["+dataset=heart"], "+dataset=heart: write dataset=heart, without +"),
    "section deleted": (["~run"], "~run: run cannot be removed; set another value, or leave the word out"),
    "jobs without -m": (
        ["run.jobs=4"],
        "run.jobs=4: these are the processes of a sweep: add -m, or leave the word out",
    ),
    "option for a word": (["--dataset", "heart"], "--dataset; settings are words, as in dataset=heart run.jobs=2; see"),
    "key given twice": (
        ["seed=1", "seed=2"],
        "seed is given twice, seed=1 and seed=2: leave one out, or write seed=1,2 and add -m",
    ),
    "key given twice, added once": (["run.jobs=1", "+run.jobs=2"], "jobs is given twice, run.jobs=1 and +run.jobs=2"),
    "configuration of a sweep": (["--cfg", "-m", "seed=1,2"], "--cfg is for one job, without -m; --dry-run lists the"),
    "key given twice, once optional": (["method.points=1", "optional.method.points=2"], "method.points is given twice"),
    "key given twice in a sweep": (["-m", "seed=1,2", "seed=3"], "leave one out, or write seed=1,2,3\n"),
    "folder of Hydra's": (["hydra.run.dir=here"], "hydra.run.dir=here: gpbench reads only hydra/launcher=NAME and"),
    "logs of Hydra's": (["-m", "hydra/job_logging=none"], "hydra/job_logging=none: gpbench reads only"),
    "another sweeper": (["-m", "hydra/sweeper=optuna"], "hydra/sweeper=optuna: gpbench reads only"),
    "launcher without -m": (["hydra/launcher=slurm"], "hydra/launcher=slurm: only sweeps have a launcher: add -m"),
    "no such folder": (["--config-dir", "nowhere"], "nowhere: no such folder"),
}


def test_a_mistake_is_one_line(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(FAKES))
    monkeypatch.setattr(runtime, "configure", lambda **_: None)  # it would change the environment of the other tests
    for name, (words, line) in MISTAKES.items():
        keys = {word.partition("=")[0].lstrip("+") for word in words}
        usual = [word for word in RUN if "=" not in word or word.partition("=")[0] not in keys]
        assert cli.main([*usual, *words]) == 2, name
        err = capsys.readouterr().err
        assert line in err and err.startswith("gpbench: ") and err.count("\n") == 1, name


def test_a_sweep_that_cannot_be_composed_starts_nothing(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for words in (["method=fakee,fake"], ["method.fat=1,2"], ["run.jobs=x", "split=0,1"], ["split=[0"]):
        assert cli.main([*RUN, "-m", *words]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.count("\n") == 1
        assert list(tmp_path.iterdir()) == []


def test_a_faulty_file_stops_only_the_runs_that_use_it(tmp_path, capsys):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "heart.yaml").write_text("name: [")
    assert cli.main(["run", "--cfg", "dataset=moons", "--config-dir", str(tmp_path)]) == 0
    capsys.readouterr()
    assert cli.main(["ls", "datasets", "--config-dir", str(tmp_path)]) == 2
    listed = capsys.readouterr()
    assert "wdbc" in listed.out and "heart.yaml, line 1: not YAML" in listed.err


def test_a_file_whose_name_is_not_that_of_its_runs_is_refused(tmp_path, capsys):
    texts = {
        "dataset": ("yours", "name: yours\ntask: binary\nsources: [{kind: file, path: a, target: y}]"),
        "method": ("yours", "defaults: [logistic, _self_]\nname: yours"),
        "protocol": ("clean", "defaults: [clean, _self_]"),
    }
    for group, (name, text) in texts.items():
        (tmp_path / group).mkdir()
        (tmp_path / group / "mine.yaml").write_text(text)
        assert cli.main(["run", "--dry-run", f"{group}=mine", "--config-dir", str(tmp_path)]) != 0
        assert f"mine.yaml: name: {name} is not the file's name" in "".join(capsys.readouterr())


def test_a_method_that_extends_a_file_keeps_its_name(tmp_path, capsys):
    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "longer.yaml").write_text("defaults: [logistic, _self_]\nsteps: 70")
    assert cli.main(["run", "--cfg", "method=longer", "--config-dir", str(tmp_path)]) == 0
    assert "name: logistic" in capsys.readouterr().out
