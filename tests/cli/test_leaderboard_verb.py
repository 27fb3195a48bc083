"""`gpbench leaderboard`: boards of recorded runs, the jobs that place a method, and errors of one line."""

import csv
import io
import json

import pytest
from samples import sample, write

from gpbench.analysis.leaderboard import division_of
from gpbench.cli import main
from gpbench.data import cards
from gpbench.errors import SweepError
from gpbench.experiments.plan import plans
from gpbench.records.store import Store
from gpbench.sweep import jobs as sweep_jobs

METRICS = {"nll": 0.5, "error": 0.2, "brier": 0.3, "ece": 0.05}


def record(id, method, dataset, split, level=0.0):
    fields = {"cpu_seconds": 9.0, "held_out": True, "schema": 2}
    values = {name: value - 0.04 * level for name, value in METRICS.items()}
    return sample(id, method=method, dataset=dataset, split=split, metrics=values, **fields)


@pytest.fixture
def results(tmp_path):
    sets, levels = division_of("classification").datasets(quick=True), {"slow": 2, "quick": 1, "old": 0}
    made = [(m, *place, level) for m, level in levels.items() for place in sets.items()]
    return write(tmp_path / "results", [record(f"{k:016x}", *of) for k, of in enumerate(made)])


def board(results, *words):
    return ["leaderboard", *words, "--division", "classification", "--results", str(results)]


def test_a_board_is_shown_as_text_csv_json_and_picture(results, tmp_path, printed):
    text = "Classification: 3 of 3 pairs of 3 methods are decided, and 1 may"
    assert printed(*board(results)).startswith(text)
    rows = list(csv.DictReader(io.StringIO(printed(*board(results, "show", "--format", "csv")))))
    assert [row["method"] for row in rows if row["metric"] == "nll"] == ["slow", "quick", "old"]
    assert len(json.loads(printed(*board(results, "--json")))) == 12
    assert "pairs and data sets" in printed(*board(results, "--all"))
    printed(*board(results, "--out", tmp_path / "board.png"))
    assert (tmp_path / "board.png").stat().st_size > 10_000


def test_the_site_has_the_board_with_its_sentence_picture_and_every_data_set(results, tmp_path):
    assert main(["report", "--results", str(results), "--out", str(tmp_path / "site")]) == 0
    folder = tmp_path / "site" / "experiment" / "gpbench"
    page = (folder / "leaderboard_classification.html").read_text()
    assert "Classification: 3 of 3 pairs of 3 methods are decided" in page
    assert "leaderboard_classification-full.svg" in page and "pairs and data sets" in page
    assert (folder / "leaderboard_classification-full.svg").stat().st_size > 10_000
    page = (tmp_path / "site" / "method" / "quick.html").read_text()  # how it stands, what it costs, where it is lost
    assert "quick is shown not to be the best of 3 methods" in page and "9 CPU seconds a run" in page
    assert "It is shown to be better than old and worse than slow." in page
    assert "are decided" not in (folder / "leaderboard_regression.html").read_text()


@pytest.fixture
def launches(monkeypatch):
    """The jobs of sweeps, which are recorded without training."""
    jobs_of_sweeps = []

    class Recorded:
        def __init__(self, folders, run):
            del folders, run

        def launch(self, jobs):
            jobs_of_sweeps.extend(jobs)
            for plan in plans(jobs):
                for run in plan.runs:
                    new = record(run.id, "logistic", plan.cfg["dataset"]["name"], run.split, level=5)
                    Store(plan.cfg["run"]["results"]).write(new, {}, {})

        def conclude(self):
            return 0

    monkeypatch.setattr(sweep_jobs, "Jobs", Recorded)
    return jobs_of_sweeps


def test_to_add_a_method_trains_it_on_the_small_sets_and_shows_its_place(results, launches, capsys):
    assert main(board(results, "add", "method=logistic", "method.ridge=0.5", "run.again=true")) == 0
    names = [word.removeprefix("dataset=") for job in launches for word in job if word.startswith("dataset=")]
    assert sorted(names) == sorted(division_of("classification").datasets(quick=True))
    sizes = [cards.read(name)["rows"] for name in names]
    assert sizes == sorted(sizes, reverse=True)  # a long run that came last would run alone
    assert all({"split=0", "protocol=clean", "run.cpu_limit=1200", "run.device=cpu"} <= set(job) for job in launches)
    answer = capsys.readouterr()
    assert "logistic may be the best of 4 methods of classification" in answer.out
    assert "12 runs, each of at most 1200 CPU seconds" in answer.err
    assert "← the method that is placed" in answer.out and answer.out.count("←") == 2
    assert all("run.again=true" in job for job in launches)


def test_a_dry_run_lists_the_jobs_of_a_method_and_trains_none(results, launches, printed):
    out = printed(*board(results, "add", "method=logistic", "--dry-run"))
    assert not launches and out.startswith("12 jobs: ") and out.endswith("12 jobs; 12 runs to train\n")
    assert "to train  1 of 1 run  dataset=german" in out


def test_alone_a_method_is_placed_among_those_that_ship(results, launches, tmp_path, monkeypatch, printed, streams):
    assert main(["collect", str(results), "--out", str(tmp_path / "shipped" / "board" / "records.parquet")]) == 0
    monkeypatch.setenv("GPBENCH_SHIPPED", str(tmp_path / "shipped"))
    monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path / "own"))
    answer = streams("leaderboard", "add", "method=logistic", "--division", "classification")
    assert "logistic may be the best of 4 methods of classification" in answer.out
    again = "gpbench leaderboard --with-shipped --quick --division classification"
    assert f"gpbench: `{again}` shows it again" in answer.err
    assert "4 methods" in printed(*again.split()[1:])
    answer = streams("leaderboard", "--division", "classification")  # one method is no board
    assert "3 methods" in answer.out and "read from the 36 runs that ship with gpbench" in answer.err


def test_the_place_of_a_method_and_a_board_of_larger_data_are_shown(results, printed, refused):
    of_three = "quick is shown not to be the best of 3 methods of classification"
    assert of_three in printed(*board(results, "--method", "quick"))
    assert printed(*board(results, "--rows", "-4k"))
    assert "on 3 data sets" in " ".join(printed(*board(results, "--rows", "4k-")).split())
    for words, line in {
        "--method quik": "no method 'quik' on the board of classification; did you mean quick?",
        "--rows 1-2": "no data set of classification has so many rows",
    }.items():
        assert line in refused(*board(results, *words.split()))
    Store(results).write(record("f" * 16, "partial", "german", 0), {}, {})
    line = "partial has no place: 11 of its runs were not made, or have no nll"
    assert line in refused(*board(results, "--method", "partial"))


def test_runs_of_a_file_are_made_anew_and_other_numbers_or_a_class_in_it_are_told(tmp_path, launches, refused, streams):
    def file_of(level, **changes):
        (plan,) = plans([["dataset=german", "method=logistic", "run.device=cpu"]])
        folder = tmp_path / f"theirs{level}{len(changes)}"
        own = record(plan.runs[0].id, "logistic", "german", 0, level=level)
        Store(folder).write(own, {**plan.cfg, "changes": changes}, {})
        streams("collect", folder, "--out", f"{folder}.parquet")
        return ["leaderboard", "verify", f"{folder}.parquet"]

    assert "nll 0.3, now 0.3: as in the file" in streams(*file_of(5)).out and len(launches) == 1
    assert "nll 0.26, now 0.3: differs by more than a tie" in streams(*file_of(6), code=1).out
    of_a_class = file_of(7, **{"method.optimiser": "{_target_: os.system}"})
    assert "names a class: a file's is never run" in refused(*of_a_class)
    line = "is of other data, code or settings than its words have here"
    assert line in refused(*file_of(8, **{"method.ridge": 3.0}))
    assert refused("leaderboard", "verify", tmp_path / "none.parquet")


WRONG = {
    "add method=svi method.inducing=10,20": "method.inducing=10,20: one method is placed with one value",
    "add method=svi --results all.parquet": "--results all.parquet: runs are recorded in a folder",
    "add": "name the one method to place, as in `gpbench leaderboard add method=svi`",
    "add method=svi method=sep": "method=svi and method=sep: name the one method to place",
    "add method=svi split=4": "split=4: the leaderboard fixes all but the method and its settings",
    "add svi": "svi: the leaderboard fixes all but the method and its settings: write method=svi",
    "add method=svi,sep": "method=svi,sep: name the one method to place",
    "--out x.foo": "--out x.foo: the ending says the form: .md, ",
    "add method=svj": "method=svj",
    "add method=gpr": "method gpr is for regression data, and wilt is binary",
}


def test_what_is_wrong_is_one_line(results, refused):
    for words, line in WRONG.items():
        err = refused(*board(results, *words.split()))
        assert line in err and err.count("\n") == 1, words


def test_a_method_that_fails_on_a_data_set_has_its_place_without_it_and_the_failure_ends_the_command(
    results, launches, monkeypatch, streams
):
    def conclude(self):
        raise SweepError("1 of 6 jobs failed, as listed above")

    monkeypatch.setattr(sweep_jobs.Jobs, "conclude", conclude)
    answer = streams(*board(results, "add", "method=logistic"), code=SweepError.exit_code)
    assert "logistic may be the best of 4 methods of classification" in answer.out
    assert "1 of 6 jobs failed" in answer.err


def test_where_no_file_can_be_nothing_is_trained(results, tmp_path, monkeypatch, refused):
    monkeypatch.setattr(sweep_jobs, "Jobs", None)
    (file := tmp_path / "a_file").write_text("mine")
    for name in ("board.png", "board.zip", "board.md"):
        (tmp_path / name).mkdir()
        below = f"{file} is a file, and a folder is needed there"
        folder = f"cannot write {tmp_path / name}: it is a folder, and a file is needed there; name another"
        for out, line in ((file / name, below), (tmp_path / name, folder)):
            assert line in refused(*board(results, "add", "method=logistic", "--out", str(out)), code=5)
