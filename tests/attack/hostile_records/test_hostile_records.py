"""Records of a stranger's through every verb that reads records: nothing runs, and nothing is written elsewhere."""

import contextlib
import io
import json
import os
import pickle
import random
import shutil
import sys
from pathlib import Path

import hostile
import pytest
import yaml

from gpbench import targets
from gpbench.cli import main
from gpbench.config.build import check_recorded
from gpbench.config.compose import compose
from gpbench.errors import UNPRINTABLE, ConfigError, StorageError
from gpbench.experiments import definition
from gpbench.records import folder as files
from gpbench.records.plan import RunPlan
from gpbench.sweep import cluster

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.chmod", "shutil.rmtree"}
_STARTS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "os.startfile"}
_watch: dict = {"on": False, "allowed": (), "events": []}


def _audit(event: str, args: tuple) -> None:
    """Notes each write outside of the folders that are allowed, each process and each connection."""
    if not _watch["on"]:
        return
    if event in _STARTS and not (
        event == "subprocess.Popen" and Path(str(args[1][0])).name in ("git", "uname", "fc-list")
    ):
        _watch["events"].append((event, args))
    writes = event == "open" and isinstance(args[2], int) and args[2] & _WRITES
    if (writes or event in _CHANGES) and isinstance(args[0], str | bytes | os.PathLike):
        path = os.path.realpath(os.fsdecode(args[0]))
        if not path.startswith(_watch["allowed"]):
            _watch["events"].append((event, path))


sys.addaudithook(_audit)


@contextlib.contextmanager
def watched(*allowed: Path):
    """Notes what is done outside of these folders and the caches."""
    caches = [os.environ["GPBENCH_CACHE"], os.environ.get("JAX_COMPILATION_CACHE_DIR", "/dev/null"), "/dev/null"]
    caches += [os.environ["GPBENCH_STORE"], str(Path.home() / ".cache"), str(Path.home() / ".config")]
    _watch.update(on=True, events=[], allowed=tuple(os.path.realpath(folder) for folder in (*allowed, *caches)))
    # Python writes the bytecode of our own modules that are first imported here, after a change of them
    without_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield _watch["events"]
    finally:
        _watch["on"], sys.dont_write_bytecode = False, without_bytecode


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folders of two whole runs that were saved.  Matplotlib finds its folder and its fonts before `HOME` changes."""
    import matplotlib.font_manager  # noqa: F401

    results = tmp_path_factory.mktemp("saved")
    for words in (["dataset=sinc", "method=linear", "run.keep=true"], ["dataset=wdbc", "method=logistic"]):
        assert main(["run", f"run.results={results}", "run.save=true", "run.predictions=true", *words]) == 0
    return sorted((results / "runs").iterdir())


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """What hostile records lead to; the user has named no folder."""
    monkeypatch.setattr(targets, "_folders", [])
    # planning all experiments would take most of the time, and reads no record
    monkeypatch.setattr(definition, "names", lambda *_: ["svdgp/table3", "sep/fig2"])
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return hostile.Trap(tmp_path).set()


def call(capsys, *words) -> tuple[int, str]:
    """Exit code and what the command prints.  A traceback of it is one of the test."""
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    assert code in range(10), words
    assert code == 0 or captured.err.strip(), words
    for line in (captured.out + captured.err).splitlines():
        assert not UNPRINTABLE.search(line), (words, line)
    return code, captured.out


@pytest.mark.parametrize("n", [8, 200])
def test_hostile_records_are_read_and_nothing_runs(n, tmp_path, saved, trap, capsys):
    """Takes `n` hostile records, with a few whole ones among them, through every verb."""
    results, out = tmp_path / "results", tmp_path / "out"
    (results / "runs").mkdir(parents=True)
    out.mkdir()
    for folder in saved:
        shutil.copytree(folder, results / "runs" / folder.name)
    ids = [hostile.write(results, saved[seed % 2], seed, trap) for seed in range(n)]
    os.symlink("/etc", results / "runs" / "etc")
    rows = tmp_path / "rows.csv"
    rows.write_text("0.5\n")
    (tmp_path / "import.csv").write_text(hostile.rows())
    where = ["--results", results]
    with watched(out, results / "runs" / "none") as events:
        for format in ("terminal", "csv", "md", "latex", "html"):
            call(capsys, "table", *where, "--metric", "all", "--format", format, "--out", out / f"table.{format}")
        reading = ["ls runs", "ls runs --json", "table", "table --json", "rank", "rank --metric nll --format md"]
        reading += ["compare linear logistic", "verify svdgp", "reproduce gpbench/regression --dry-run"]
        for words in reading:
            call(capsys, *words.split(), *where)
        call(capsys, "collect", results, "--out", out / "all.parquet")
        call(capsys, "report", "--out", out / "site", *where)
        call(capsys, "import", tmp_path / "import.csv", *where)
        for id in ids:
            call(capsys, "show", id, *where)
            call(capsys, "show", id, "--json", *where)
            call(capsys, "cite", id, *where)
            call(capsys, "predict", id, "--data", rows, *where)
        for id in random.Random(n).sample(ids, min(n // 8, 12)):
            call(capsys, "plot", id, "--out", out / "plot", *where)
        for words in (["ls", "runs"], ["table", "--metric", "all", "--format", "md"], ["show", "--last"]):
            call(capsys, *words, "--results", out / "all.parquet")
    assert not events, events[:5]
    assert not [*trap.marks.iterdir()] and "evil_of_a_record" not in sys.modules
    pages = [path for path in (out / "site").rglob("*") if path.suffix in (".html", ".svg")]
    for path in [*pages, out / "table.md", out / "table.latex"]:
        text = path.read_text(encoding="utf-8")
        assert not UNPRINTABLE.search(text.replace("\n", "")), path
        assert "<script>alert" not in text and "<img src=x" not in text, path
    assert "](javascript" not in (out / "table.md").read_text().replace(r"\](", "")


def test_a_plan_on_stdin_names_no_code(tmp_path, trap, monkeypatch, refused):
    plan = RunPlan.from_config(compose(["dataset=sinc", "method=linear", f"run.results={tmp_path}/results"]))
    for target in ("evil_of_a_record.run", "numpy.testing.measure", "os.system"):
        method = {**plan.cfg["method"], "_target_": target}
        cfg = {**plan.cfg, "method": method, "config_dirs": [str(tmp_path / "evil")]}
        text = RunPlan(cfg, plan.data_checksum, plan.runs).to_json()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert target in refused("run", "--plan", code=ConfigError.exit_code)
    assert not [*trap.marks.iterdir()]


@pytest.mark.parametrize("target", ["evil_of_a_record.run", "os.system", "gpbench.data.store.save", "runpy.run_path"])
def test_a_card_of_a_strangers_names_no_code(tmp_path, trap, target, refused):
    """Though it lies in a folder of the user's: a card is data."""
    (tmp_path / "mine" / "dataset").mkdir(parents=True)
    source = {"kind": "file", "path": "x.csv", "reader": {"_target_": target, "a": str(trap.marks / "card")}}
    card = {"name": "card", "task": "regression", "sources": [source]}
    (tmp_path / "mine" / "dataset" / "card.yaml").write_text(json.dumps(card))
    (tmp_path / "mine" / "x.csv").write_text("touch me\n")
    assert target in refused("data", "rows", "card", "--split", "0", "--config-dir", tmp_path / "mine")
    assert not [*trap.marks.iterdir()]


def test_the_result_of_a_job_is_texts_in_a_folder_of_ones_own(tmp_path, trap):
    folder = tmp_path / "sweeps" / "one"
    cluster.make_folder(folder)
    result = folder / "1_0_result.pkl"
    result.write_bytes(pickle.dumps(("success", "{}")))
    assert cluster.read_result(result) == ("success", "{}")
    result.write_bytes(pickle.dumps(("success", hostile._Payload(trap.marks / "result"))))
    with pytest.raises(ValueError, match="an object of"):
        cluster.read_result(result)
    for mode in (0o755, 0o770):
        folder.chmod(mode)
        with pytest.raises(StorageError, match="with mode 700"):
            cluster.read_result(result)
    folder.chmod(0o700)
    folder.parent.chmod(0o775)
    with pytest.raises(StorageError, match=r"others can write into .*sweeps.*chmod go-w"):
        cluster.read_result(result)
    folder.parent.chmod(0o755)
    shutil.move(folder, elsewhere := tmp_path / "elsewhere")
    os.symlink(elsewhere, folder)
    with pytest.raises(StorageError, match="must be a folder of yours"):
        cluster.read_result(result)
    assert not [*trap.marks.iterdir()]


@pytest.mark.parametrize("place", ["optimiser", "nested", "list", "kernel"])
@pytest.mark.parametrize("named", [False, True])
def test_a_record_chooses_no_function_of_the_users_folder(tmp_path, trap, place, named, monkeypatch, new_file):
    """A function of the user's without a base class, with arguments that the record has chosen."""
    mine = tmp_path / "mine"
    new_file(mine / "reader" / "mine.yaml", "_target_: helpers_of_mine.remove\n")  # of other arguments
    (mine / "helpers_of_mine.py").write_text("import os\ndef remove(path): os.remove(path)\n")
    if named:
        new_file(mine / "method" / "mine.yaml", "optimiser: {_target_: helpers_of_mine.remove, path: x}\n")
    monkeypatch.syspath_prepend(str(mine))
    targets.add_folders([mine])
    call = {"_target_": "helpers_of_mine.remove", "path": str(tmp_path / "precious")}
    section = {
        "optimiser": {"optimiser": call},
        "nested": {"optimiser": {"_target_": "optax.adam", "inner": {"a": call}}},
        "list": {"optimiser": {"_target_": "optax.chain", "_args_": [call]}},
        "kernel": {"kernel": {"rbf": {"lengthscale": call}}},
    }[place]
    if named:
        check_recorded(section, [mine])
    else:
        with pytest.raises(ConfigError, match=r"a record may not call helpers_of_mine\.remove: name it in a file"):
            check_recorded(section, [mine])


def test_predict_calls_no_function_that_a_record_chooses(tmp_path, trap, capsys, refused):
    mine, results, precious = tmp_path / "mine", tmp_path / "results", tmp_path / "precious"
    mine.mkdir()
    precious.write_text("keep")
    (mine / "helper_that_removes.py").write_text("import os\ndef remove(path): os.remove(path)\n")
    (tmp_path / "rows.csv").write_text("0.5\n")
    assert main(["run", f"run.results={results}", "run.save=true", "dataset=sinc", "method=svi", "method.steps=2"]) == 0
    (folder,) = (results / "runs").iterdir()
    record, _ = files.unseal((folder / files.RECORD).read_bytes())
    config = yaml.safe_load((folder / files.CONFIG).read_text())
    config["method"]["optimiser"] = {"_target_": "helper_that_removes.remove", "path": str(precious)}
    hostile._seal(folder, record, config)
    capsys.readouterr()
    words = ["predict", folder.name, "--data", tmp_path / "rows.csv", "--results", results, "--config-dir", mine]
    assert "may not call helper_that_removes.remove" in refused(*words, code=ConfigError.exit_code)
    assert precious.exists()
