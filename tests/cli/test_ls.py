"""`gpbench ls` from the command line."""

import json
import os
import subprocess
import sys

import pytest
from samples import grid, sample, write

from gpbench.cli import main


def listing(capsys, *argv):
    assert main(["ls", *map(str, argv), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def results(tmp_path):
    facts = {"setting": "m=15%", "seconds": {"train": 2.0}}
    for k, (method, status, nll) in enumerate((("svi", "done", 0.5), ("sep", "diverged", None), ("sep", "done", 0.5))):
        record = sample(f"{k:016x}", status=status, method=method, split=k, metrics={"nll": nll}, **facts)
        write(tmp_path, [record])
    return tmp_path


def test_runs_are_filtered_and_aligned_text_without_a_terminal(results, capsys):
    for words, splits in {
        "": [0, 1, 2],
        "--status diverged": [1],
        "--method sep,svi --status done": [0, 2],
        "--dataset crabs": [],
        "--protocol clean --method sep": [1, 2],
    }.items():
        assert [r["split"] for r in listing(capsys, "runs", "--results", results, *words.split())] == splits, words
    main(["ls", "runs", "--results", str(results)])
    header, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 3 and all(row.find("pima") == header.find("dataset") for row in rows)


def test_the_split_set_is_shown_where_runs_of_a_data_set_are_on_several(tmp_path, printed):
    for k, (name, setting) in enumerate((("kfold", ""), ("random90", ""), ("raetsch", "set=raetsch"))):
        write(tmp_path, [sample(id=f"{k:016x}", split=4, split_set=name, setting=setting)])
    lines = printed("ls", "runs", "--results", tmp_path).splitlines()
    assert [" of " in line for line in lines] == [False, True, True, False] and "4 of kfold" in lines[1]


def test_a_default_results_folder_that_is_missing_has_no_runs_and_data_sets_have_task_size_and_title(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path / "none"))
    assert listing(capsys, "runs") == []
    wdbc = next(item for item in listing(capsys, "datasets") if item["name"] == "wdbc")
    assert (wdbc["task"], wdbc["rows"], wdbc["inputs"]) == ("binary", 569, 30) and wdbc["title"]


def test_a_users_own_files_are_listed_with_their_first_comment(tmp_path, capsys):
    for group in ("method", "protocol", "experiment"):
        (tmp_path / group / "mine").mkdir(parents=True)
        (tmp_path / group / "mine" / "table1.yaml").write_text("# @package _global_\n# My own.\nkey: 1\n")
        items = listing(capsys, f"{group}s", "--config-dir", tmp_path)
        assert {"name": "mine/table1", "description": "My own."} in items


def test_reading_verbs_start_without_the_slow_packages(tmp_path):
    """`scripts/bench start` measures what that is worth: half a second is the aim."""
    nll = lambda dataset, method, split: {"nll": split / 10 + (method == "svi")}
    write(tmp_path, grid(("pima", "heart"), ("sep", "svi"), metrics=nll, train_rows=90, test_rows=10))
    slow = {"jax", "equinox", "hydra", "matplotlib", "requests", "rich"}
    verbs = {"cite sep": "numpy", "ls datasets": "scipy", "data ls": "sklearn", "data info kegg": "sklearn"}
    verbs |= {"ls runs": "scipy", "show --last": "scipy", "table": "sklearn"}
    verbs |= dict.fromkeys(("rank", "compare sep svi", "power sep svi", "best --task binary"), "jax")
    code = "import json, sys; from gpbench.cli import main; main(sys.argv[1:]); print(json.dumps([*sys.modules]))"
    env = {**os.environ, "GPBENCH_RESULTS": str(tmp_path)}
    for verb, more in verbs.items():
        words = [sys.executable, "-c", code, *verb.split()]
        done = subprocess.run(words, check=True, capture_output=True, env=env, text=True)
        assert not (slow | {more}) & {*json.loads(done.stdout.splitlines()[-1])}, verb
