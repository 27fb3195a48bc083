"""`gpbench reproduce`, `table ID` and `plot ID`: a small experiment of a user's own, from nothing to its table."""

import json
from pathlib import Path

import pytest
from commands import gpbench

from gpbench.cli import main
from gpbench.cli import reproduce as reproduce_verb
from gpbench.config.words import read
from gpbench.errors import SweepError
from gpbench.records.store import Store

TINY = """
# Tiny: two baselines on wdbc
title: Two baselines
presets: {quick: 2 splits, full: 3 splits}
runs:
  - dataset: wdbc
    method: [constant, logistic]
    split: {quick: "[0,1]", full: "[0,1,2]"}
table: {rows: dataset, columns: method, metrics: [nll, error]}
figure: {kind: traces, panels: [nll], colour: method}
"""

RESULTS = "my results, a=b"  # signs that an override must quote


@pytest.fixture(scope="module")
def folder(tmp_path_factory, new_file) -> Path:
    """A configuration folder with the experiment `my/tiny`, reproduced once; its results are in RESULTS."""
    folder = tmp_path_factory.mktemp("reproduce")
    new_file(folder / "mine" / "experiment" / "my" / "tiny.yaml", TINY)
    (folder / "first.json").write_text(json.dumps(reproduce(folder, "--jobs", "2", "run.checkpoint_every=null")))
    return folder


def reproduce(folder, *words):
    where = ["--config-dir", "mine", "--results", str(folder / RESULTS)]
    return gpbench(folder, "reproduce", "my/tiny", *where, *words, fake=False)


def verb(folder, capsys, name, *words):
    code = main([name, "my/tiny", "--config-dir", str(folder / "mine"), "--results", str(folder / RESULTS), *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_it_runs_every_job_once_and_makes_table_and_figure(folder):
    code, out, err = json.loads((folder / "first.json").read_text())
    assert (code, err) == (0, "") and "2 jobs: 2 done" in out
    assert "Quick preset. 2 splits." in out and "wdbc " in out and "missing" not in out
    assert all((folder / RESULTS / "my" / f"tiny.{ending}").stat().st_size > 1000 for ending in ("png", "pdf"))
    records = Store(folder / RESULTS).all()
    assert len(records) == 4 and {record.preset for record in records} == {"quick"}
    code, out, _ = reproduce(folder, "--format", "csv")
    assert code == 0 and "jobs" not in out and out.startswith("dataset,output,method")


def test_the_table_and_the_plot_say_what_is_missing_of_another_preset(folder, capsys):
    code, out, _ = verb(folder, capsys, "table", "--preset", "full")
    assert code == 0
    assert "2 of 6 runs missing: `gpbench table my/tiny --preset full --missing` lists them." in out
    assert "Mixed presets: quick (4)." in out
    code, out, _ = verb(folder, capsys, "plot", "--preset", "full", "--out", str(folder / "pictures"), "--json")
    summary = json.loads(out)
    assert code == 0 and summary["missing"] == 2 and (folder / "pictures" / "my" / "tiny.png").is_file()


def test_a_table_is_written_to_a_file_in_any_format(folder, capsys):
    code, out, err = verb(folder, capsys, "table", "--format", "latex", "--out", str(folder / "a" / "tiny.tex"))
    assert (code, out) == (0, "") and err.endswith(f"saved in {folder / 'a' / 'tiny.tex'}\n")
    assert r"\toprule" in (folder / "a" / "tiny.tex").read_text()
    code, _, err = verb(folder, capsys, "table", "--format", "latex", "--out", "tiny.md")
    assert code == 2 and "--out tiny.md is Markdown and --format latex is LaTeX" in err
    rows = json.loads(verb(folder, capsys, "table", "--json")[1])
    assert [(r["method"], r["metric"], r["mark"]) for r in rows][:2] == [
        ("constant", "nll", "tied"),  # two splits distinguish hardly anything
        ("logistic", "nll", "best"),
    ]


def test_stopped_it_still_shows_what_is_there(folder):
    code, out, err = reproduce(folder, "--preset", "full", "run.time_limit=0.001")
    assert code == 75 and "run the same command to resume" in err and "2 of 6 runs missing" in out


RANKS = """
title: Ranks on one data set
runs_of: my/tiny
table: {kind: ranks, label: method, metrics: [nll]}
figures: {dots: {kind: dots, label: method, metric: nll}}
"""


def ranks(folder) -> list:
    """The words that find the experiment `my/ranks`, which is in the folder now."""
    (folder / "mine" / "experiment" / "my" / "ranks.yaml").write_text(RANKS)
    return ["--config-dir", folder / "mine", "--results", folder / RESULTS]


def test_ranks_without_common_data_sets_are_one_line_and_hide_no_failure(folder, monkeypatch, refused):
    where = ranks(folder)
    for name in ("table", "reproduce"):
        warning = refused(name, "my/ranks", *where)
        assert "all methods by nll: ranks need at least two data sets" in warning and warning.count("\n") == 1

    def fail(sweep):
        raise SweepError("2 jobs failed")

    monkeypatch.setattr("gpbench.sweep.jobs.Jobs.launch", lambda *_: None)
    monkeypatch.setattr("gpbench.sweep.jobs.Jobs.conclude", fail)
    assert "2 jobs failed" in refused("reproduce", "my/ranks", "--preset", "full", *where, code=SweepError.exit_code)


def test_figures_of_an_experiment_are_drawn_into_files_of_their_names(folder, printed):
    files = [folder / RESULTS / "my" / f"ranks-dots.{ending}" for ending in ("png", "pdf", "md")]
    assert printed("plot", "my/ranks", *ranks(folder)).splitlines() == [*map(str, files)]
    assert all(file.is_file() for file in files)


def test_words_choose_among_the_values_of_an_experiment_and_a_results_folder_is_one_word(tmp_path, printed):
    for words, jobs, runs in (
        ("gpbench/leaderboard_regression dataset=no2", 34, 34),
        ("gpbench/leaderboard_regression --preset full", 34 * 34, 34 * 34),
        ("sep/table1 dataset=heart", 6, 30),
        ("sep/table1 dataset=heart,pima method=sep method.inducing=0.15", 2, 10),
    ):
        said = printed("reproduce", *words.split(), "--dry-run", "--results", tmp_path)
        assert said.splitlines()[-1] == f"{jobs} jobs; {runs} runs to train"
    for name in ("a b", "it's", "back\\", "a\\'b"):
        (word,) = read([reproduce_verb._results(tmp_path / name)])
        assert word.value == str(tmp_path.resolve() / name)


def test_its_jobs_run_where_the_launcher_says(folder):
    code, out, err = reproduce(folder, "run.again=true", "hydra/launcher=local", "--jobs", "2")
    assert (code, err) == (0, "") and "2 jobs: 2 done" in out
    assert not (folder / RESULTS / "sweeps").exists()
    assert "name its launcher too" in reproduce(folder, "run.again=true", "hydra.launcher.partition=gpu")[2]
