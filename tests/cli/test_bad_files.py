"""A mistake in a user's file, module or folder is one line that names it, and nothing of the user's is touched."""

import importlib
import io
import json
import re
import shutil
import sys

import numpy as np
import pytest
from commands import FAKES, RUN
from samples import sample, write

import gpbench
from gpbench import cli, runtime
from gpbench.data import readers
from gpbench.errors import DataError, nearest

CARD = "name: mine\ntask: regression\nsources: [{kind: file, path: mine.csv, target: price}]\n"


@pytest.fixture
def call(tmp_path, capsys, monkeypatch):
    """Exit code and the line on stderr of a command with --config-dir, in this process and an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runtime, "configure", lambda **_: None)  # it would change the environment of the other tests
    monkeypatch.setattr(sys, "path", [str(FAKES), *sys.path])
    for group in ("dataset", "method"):
        (tmp_path / group).mkdir()

    def run(*words):
        code = cli.main(list(map(str, words)))
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and err.startswith("gpbench: "), err
        return code, err

    return run


@pytest.fixture
def results(tmp_path):
    shared = {"setting": "m=15%", "metrics": {"nll": 0.5}, "seconds": {"train": 2.0}}
    records = ({}, {"setting": "m=15%, steps=3"}, {"method": "svi"}, {"setting": ""})
    return write(tmp_path / "results", [sample(f"{k:016x}", **shared | of) for k, of in enumerate(records)])


# ----- cards


def test_run_names_the_file_of_a_card(tmp_path, call):
    for card, line in {
        b"name: [a\nb: {": "mine.yaml, line ",
        b"name: mine\n\ttask: regression\n": "write spaces for tabs",
        b"- a\n- b\n": "mine.yaml: must be a mapping",
        b"": "mine.yaml): the card lacks name",
        b"name: \xff\n": "mine.yaml cannot be read",
    }.items():
        (tmp_path / "dataset" / "mine.yaml").write_bytes(card)
        code, err = call("run", "--cfg", "--config-dir", tmp_path, "dataset=mine")
        assert code == 2 and line in err and "unicode string" not in err


# ----- data


def test_an_archive_says_what_it_lacks_and_unknown_names_are_listed_in_reason():
    array, archive = io.BytesIO(), io.BytesIO()
    np.save(array, np.zeros((3, 2)))
    np.savez(archive, A=[1], b=[2])
    lines = {"an array (.npy), not an archive (.npz)": array, "no array 'X'; the archive has 'A', 'b'": archive}
    for line, file in lines.items():
        with pytest.raises(DataError, match=re.escape(line)):
            readers.npz([file.getvalue()], {})
    assert nearest("zzz", []) == "there are none"
    assert nearest("zzz", [f"name{k:03}" for k in range(100)]).endswith("name029, and 70 more")
    assert nearest("b", ["x/b", "y/b", "bb"]) == "did you mean x/b or y/b?"
    assert nearest("nam", ["name", "named", "names"]) == "did you mean name, named or names?"
    for name, known, hint in (
        ("sep/c1", ["sep/c01", "sep/c19", "sep/c21"], "did you mean sep/c01?"),
        ("HEART", ["airline", "heart"], "did you mean heart?"),
        ("mnist", ["mnist_odd_even", "moons"], "did you mean mnist_odd_even?"),
        ("sep", ["gam/table1", "sep/fig1", "sep/table1"], "known are sep/fig1, sep/table1"),
        ("x/table1", ["gam/table1", "sep/fig1"], "did you mean gam/table1?"),
    ):
        assert nearest(name, known) == hint


def test_a_card_with_one_split_says_so_and_a_results_folder_that_cannot_be_is_named(tmp_path, call):
    (tmp_path / "dataset" / "mine.yaml").write_text(CARD + "splits: {sets: {random90: 1}}\n")
    code, err = call("data", "rows", "mine", "--split", 1, "--config-dir", tmp_path)
    assert code == 2 and "split=1: mine has split 0 alone" in err
    (tmp_path / "a_file").write_text("mine")
    for place in ("a_file", "a_file/below", "/proc/none"):
        code, err = call(*RUN, f"run.results={place}")
        assert code == 5 and f"cannot use the results folder {place}" in err and "another process" not in err
    assert (tmp_path / "a_file").read_text() == "mine"
    assert "read as a file: name another one" in call(*RUN, f"run.results={tmp_path}/all.parquet")[1]


# ----- modules


def test_what_is_wrong_in_a_users_module_or_target_is_one_line(tmp_path, call, monkeypatch):
    (tmp_path / "method" / "mine.yaml").write_text("_target_: my_bad_method.M\nname: mine\n")
    for module, line in {
        "def x(:\n": "cannot import 'my_bad_method.M': invalid syntax (my_bad_method.py, line 1)",
        "\n1 / 0\n": "ZeroDivisionError in line 2 of ",
        "import sys\nsys.exit(0)\n": "SystemExit in line 2 of ",
        "from gpbench.methods.base import Method\nclass M(Method): ...\n": "lacks init, predict, step; see docs/",
        "import os\nM = os.system\n": "my_bad_method.M is no gpbench.Method",
    }.items():
        monkeypatch.delitem(sys.modules, "my_bad_method", raising=False)
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        (tmp_path / "my_bad_method.py").write_text(module)
        importlib.invalidate_caches()
        code, err = call("check", "mine", "--config-dir", tmp_path)
        assert code == 2 and line in err, module
    for target in ("", ".a.M", "M", "os.system"):
        (tmp_path / "method" / "mine.yaml").write_text(f'_target_: "{target}"\ncommand: "true"\n')
        code, err = call("check", "mine", "--config-dir", tmp_path)
        assert code == 2 and ("_target_" in err or "os.system is no gpbench.Method" in err)


def test_a_class_that_ends_the_program_is_one_line(tmp_path, call, monkeypatch):
    monkeypatch.delitem(sys.modules, "my_method_exits", raising=False)
    code = "from gpbench.methods.baselines.linear import Linear\nimport sys\n"
    code += "class M(Linear):\n    def predict(self, *args, **keys): sys.exit(0)\n"
    (tmp_path / "my_method_exits.py").write_text(code)
    (tmp_path / "method" / "mine.yaml").write_text("_target_: my_method_exits.M\nname: mine\nridge: 1.0\n")
    words = ["dataset=sinc", "method=mine", f"run.results={tmp_path / 'results'}", "run.progress=false"]
    status, err = call("run", *words, "--config-dir", tmp_path)
    assert status == 2 and "my_method_exits.py calls sys.exit(0): raise an error" in err
    with pytest.raises(gpbench.ConfigError, match=r"line 4 of .*my_method_exits\.py calls sys\.exit\(0\)"):
        gpbench.run(overrides=words, config_dir=tmp_path)


# ----- folders and files


def test_an_out_that_cannot_be_written_or_has_too_long_a_name_is_one_line(tmp_path, results, call):
    (tmp_path / "folder").mkdir()
    (tmp_path / "a_file").write_text("mine")
    for words in (["table"], ["compare", "sep", "svi"]):
        endings = ["", ".md", *[".png"] * (words[0] == "compare")]
        for out in ("folder", *(f"a_file/below{ending}" for ending in endings)):
            code, err = call(*words, "--results", results, "--out", tmp_path / out)
            assert code == 5 and f"cannot write {tmp_path / out}" in err and "name another file" in err
            file = f"{tmp_path / 'a_file'} is a file, and a folder is needed there; move the file, or name another"
            assert (file in err) == out.startswith("a_file")
    out = tmp_path / f"{'n' * 252}.md"
    assert call("table", "--results", results, "--out", out)[0] == 0 and out.read_text().startswith("Recorded runs of")
    code, err = call("table", "--results", results, "--out", out.with_name(f"n{out.name}"))
    assert code == 5 and "File name too long; shorten the name, or name another file" in err
    assert [*tmp_path.glob("n*")] == [out]


# ----- what is printed


def test_a_setting_is_that_setting_and_no_longer_one(results, printed):
    for wanted, count in (("m=15%", 2), ("m=15%, steps=3", 1), ("steps=3, m=15%", 1), ("", 1)):
        assert len(json.loads(printed("table", "--results", results, "--setting", wanted, "--json"))) == count, wanted
