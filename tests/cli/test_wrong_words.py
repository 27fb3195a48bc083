"""Wrong words of every verb are one line, and what every verb prints fits the terminal."""

import hashlib
import re
import shlex

import pytest
from samples import grid, write

from gpbench.analysis.printing import aligned
from gpbench.cli import VERBS, main

WRONG = {
    # verbs and options
    "plto": "no verb 'plto'; did you mean plot?",
    "run --jsn": "--jsn",
    "data rows sinc --spl 0": "are required: --split",
    "check": "the following arguments are required: METHOD; see gpbench check --help",
    "run --cfg --json": "--json: --cfg trains nothing; leave --json out",
    "run --dry-run --plot all": "--plot: --dry-run trains nothing; leave --plot out",
    "run --cfg --dry-run": "--dry-run: --cfg trains nothing; leave --dry-run out",
    "run -m --json": "--json is for one job, without -m; `gpbench ls runs --json` lists",
    "run run.processes=2 --plot all": "--plot is for runs of one process: leave it out",
    "run --plot unit": "no kind of picture 'unit'; did you mean units?",
    "ls methods --with-shipped": "methods are in no results folder: leave it out, or list the runs",
    "ls methods --dataset heart": "--dataset selects runs: leave it out for methods, or list the runs",
    # of checks and data
    "check linear method=svi": "method is given twice, method=linear and method=svi: leave one out\n",
    "check method=linear foo": "cannot read 'foo'",
    "check kernel:cosine --rows 40": "--rows: kernel:cosine is no method; leave the option out",
    "check sep --rows 2": "--rows 2: give at least 10",
    "data rows --split 0 sinc moons --out x.npz": "one file for 2 data sets",
    "data rows --split 0 sinc --out none/x.npz": "no such folder",
    "data check all target=drag": "target=drag: this is for the path of a table, as in a.csv target=drag\n",
    "data check openml:abc": "give a number of openml.org",
    "cite sepp": "'sepp'; did you mean sep",
    "plot sep/fig2 --metric nll": "--metric is for runs, and not for figures: leave it out",
    "plot --last --preset full": "--preset is for figures, and not for runs: leave it out",
    # claims and boards
    "verify sep/c1": "no claim and no experiment with claims 'sep/c1'; did you mean sep/c01?",
    "leaderboard shwo": "no action 'shwo' of leaderboard; did you mean show?",
    "leaderboard show method=svi": "unrecognized: method=svi; names of methods and data sets are --method A,B",
    "leaderboard --dry-run": "unrecognized: --dry-run; see gpbench leaderboard show --help",
    "leaderboard --division ranking": "no division 'ranking'; known are classification, regression",
}

OF_RECORDS = {
    "ls runs --protocol cleen": "no run has protocol 'cleen'; did you mean clean?\n",
    "ls runs --status done,lost": "no run has status 'lost'; known are diverged, done, failed\n",
    "show a": "no run",
    "show 0": "18 runs start with '0'",
    "show": "",
    "show 00 --last": "",
    "plot 0000000000000000 sep/fig2": "one figure at a time",
    "table --metric nlll": "no run has the metric 'nlll'; did you mean nll",
    "table --setting m=99": "no run has setting 'm=99'; known are 'm=15%'",
    "table --setting m=16%": "no run has setting 'm=16%'; did you mean 'm=15%'",
    "table --set m=15%": "unrecognized: --set",
    "table --format md --format csv": "--format is given twice: leave one out\n",
    "table heart": "no experiment 'heart'; it is a data set: give --dataset=heart",
    "table --out a.png": "there is no picture of this table",
    "table --out a.foo": ".txt, .zip;",
    "compare sep svii": "did you mean svi",
    "power sep svi --out x.png": "no picture",
    "plot sep/table1": "sep/table1 is a table: gpbench table sep/table1",
    "plot sep/fig2": "nothing is recorded of sep/fig2 in preset quick; make it with gpbench reproduce sep/fig2",
    "plot fig2": "no experiment 'fig2'; did you mean qsgp/fig2, sep/fig2 or svdgp/fig2?",
    "table sep/fig2": "sep/fig2 is a figure: gpbench plot sep/fig2",
    "table sep/table1 --dataset pima": "--dataset: sep/table1 says itself",
    "reproduce sep/table1 method.steps=3": "has no method.steps; `gpbench run -m` runs others",
    "reproduce sep/table1 dataset=hart": "of sep/table1 has dataset=australian, breast, crabs, heart,",
    "reproduce sep/table1 foo": "foo: write key=value",
    "reproduce sep/table1 dataset=iris": ": choose one of these, or run others by `gpbench run -m`\n",
    "reproduce sep/table1 run.jobs=2 --jobs 3": "jobs is given twice, run.jobs=2 and run.jobs=3",
    "reproduce sep/table1 --preset fast": "invalid choice",
    "reproduce sep/table1 --dry-run --format latex --out x.md": "--out x.md is Markdown and --format latex is LaTeX",
    "reproduce gpbench/leaderboard_regression dataset=soil": "; --preset full has ",
}
"""Words of verbs that read records; those here are of two methods on three data sets."""

READING = ("table", "table sep/table1", "plot sep/fig2", "rank", "compare a b", "power a b", "report", "ls runs")


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """The one line with which a command is refused, in an empty folder that stays empty; "" where it is not so."""
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)

    def refused(words: str, *more: str) -> str:
        code, (out, err) = main([*shlex.split(words), *more]), capsys.readouterr()
        is_one_line = err.startswith("gpbench: ") and err.count("\n") == 1
        return err if code == 2 and is_one_line and not out and not [*here.iterdir()] else ""

    return refused


def others(answers: dict[str, str], lines: dict[str, str]) -> dict[str, str]:
    """The answers that are not these lines."""
    return {words: answer for words, answer in answers.items() if not answer or lines[words] not in answer}


def test_wrong_words_are_one_line_and_a_results_folder_that_is_missing_or_empty_is_named(refused, tmp_path):
    assert not others({words: refused(words) for words in WRONG}, WRONG)
    for words in (*READING, "show --last", "cite sep"):
        line = f"gpbench: {tmp_path / 'none'}: no such folder\n"
        assert refused(words, "--results", str(tmp_path / "none")) == line and not (tmp_path / "none").exists()
    assert "train with `gpbench run`" in refused("table", "--results", ".")


def test_wrong_words_about_records_are_one_line_without_their_commits(refused, tmp_path):
    metrics = lambda dataset, method, split: {"nll": 0.5 + split / 10}
    facts = {"setting": "m=15%", "commit": "c" * 40, "train_rows": 90, "test_rows": 10}
    write(tmp_path / "results", grid(("pima", "crabs", "heart"), ("sep", "svi"), metrics=metrics, **facts))
    answers = {words: refused(words, "--results", str(tmp_path / "results")) for words in OF_RECORDS}
    assert not others(answers, OF_RECORDS) and "cccccccccc" not in str(answers)


SETTING = "m=25%, kernel=squared_exponential(isotropic), steps=250"
_READS = [*(f"ls {kind}" for kind in ("methods", "datasets", "protocols", "experiments", "runs")), "table", "rank"]
_READS += ["show --last", "table --dataset pima --metric all --later", "compare sep svi", "power sep svi", "verify sep"]
_READS += ["best --task binary", "cite clean", "data ls", "data info kegg", "run dataset=wdbc method=sep --dry-run"]
SHOWN = [words.split() for words in _READS]
HELP = [["--help"], *([verb, "--help"] for verb in VERBS), ["data", "fetch", "--help"]]
COPIED = re.compile(r"https?://|[0-9a-f]{40}|^ *[\w.]+: |^ *- |^  \w+ = {|^folder|::")
"""Addresses, paths, checksums, YAML and BibTeX, which are copied as they are."""


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path))

    def metrics(*place):
        value = 0.3 + int(hashlib.sha256(repr(place).encode()).hexdigest()[:4], 16) / 2**20
        return {"nll": value, "error": value / 2, "ece": 0.02, "brier": 0.1, "auc": 0.9}

    facts = {"setting": SETTING, "held_out": True, "train_rows": 690, "test_rows": 76}
    facts["versions"] = dict.fromkeys(("python", "gpbench", "jax", "numpy", "scipy", "equinox"), "1.2.3")
    return write(tmp_path, grid(("pima", "heart", "crabs"), ("sep", "svi", "gfitc"), metrics=metrics, **facts))


def check(commands, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    for words in commands:
        try:
            assert main(words) in (0, 1), words
        except SystemExit as stop:  # --help
            assert not stop.code, words
        lines = capsys.readouterr().out.splitlines()
        assert lines and not [line for line in lines if len(line) > width and not COPIED.search(line)], words


def test_no_line_is_longer_than_80_characters_and_a_list_says_once_what_it_shares(
    results, monkeypatch, capsys, printed
):
    quick = ("ls", "show", "table", "data", "run")
    check([words for words in (*SHOWN, *HELP) if words[0] in quick or words[-1] == "--help"], 80, monkeypatch, capsys)
    monkeypatch.setenv("COLUMNS", "80")
    table, shared = printed("ls", "runs", "--protocol", "clean").split("\n\n")
    header, *rows = table.splitlines()
    assert header.split() == ["id", "dataset", "method", "split", "metrics"] and len(rows) == 27
    assert shared.startswith("all runs: status done, setting m=25%") and "protocol clean" in shared


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_line_of_any_verb_is_longer_than_the_terminal(width, results, monkeypatch, capsys):
    check([*SHOWN, *HELP], width, monkeypatch, capsys)


def test_columns_that_would_be_too_narrow_become_lines_and_wide_ones_stay_columns():
    header, text = ("claim", "verdict", "evidence", "says"), ("a word " * 15).strip()
    rows = [("sep/c01", "undecided", text, text), ("sep/c02", "not run", "", text)]
    narrow, wide = ([*aligned(header, rows, width)] for width in (70, 140))
    assert narrow[0] == "sep/c01  verdict: undecided" and narrow[1].startswith("  evidence: a word")
    assert wide[0].split() == [*header] and wide[1].startswith("sep/c01  undecided  a word")
    assert max(map(len, narrow)) <= 70 and max(map(len, wide)) <= 140
    assert [*aligned(header, rows)][1].count(text) == 2
