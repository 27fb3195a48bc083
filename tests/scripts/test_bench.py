"""`scripts/bench --save` and `--against`, `scripts/again.py` and `scripts/cores.py`: what counts as a difference."""

import csv
import dataclasses
import math
import runpy
import sys
from pathlib import Path

import again
import cores
import numpy as np
import pytest

from gpbench.experiments.plan import plans
from gpbench.records.collection import open_store

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def bench(monkeypatch):
    """The modules of scripts/benches that need no JAX."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from benches import _machine, _results

    monkeypatch.setattr(_results, "_measured", {})
    return _machine, _results


@pytest.fixture
def command(bench, monkeypatch):
    """`scripts/bench start` on made-up seconds: its function, and the measured ones."""
    from benches import start

    from gpbench import runtime

    machine, of = bench
    main = runpy.run_path(str(SCRIPTS / "bench"))["main"]
    monkeypatch.setattr(runtime, "configure", lambda: None)
    monkeypatch.setattr(machine, "wait_until_idle", lambda _: None)
    monkeypatch.setattr(machine, "facts", lambda: {"cpu": "made up"})
    monkeypatch.setattr(machine, "product_rates", lambda: {"float64": 1e9})
    monkeypatch.setattr(start, "best", lambda *_: 0.5)
    return main, of._measured


def results(of, rate: float, **seconds: float):
    """Results in float64 with the product rate of a machine."""
    facts = {"commit": "abc", "cpu": "made up", "product_rates": {"float64": rate, "float32": 2 * rate}}
    return of.Results(facts, {name: {"seconds": s, "precision": "float64"} for name, s in seconds.items()})


def kept(rate, seconds) -> str:
    """The text of a file of --save with one result, without a product rate where that is None."""
    rates = "" if rate is None else f'"product_rates": {{"float64": {rate}}}'
    result = f'{{"seconds": {seconds}, "precision": "float64"}}'
    return f'{{"facts": {{{rates}}}, "results": {{"step": {result}}}}}'


def test_a_slower_machine_is_not_slower_code_and_more_products_than_the_threshold_are(bench):
    _, of = bench
    before, now = results(of, 2e9, step=1.0, start=3.0), results(of, 1e9, step=2.0, start=6.1)
    lines, is_slower = of.compare(now, before)
    assert not is_slower and now.ratios(before) == pytest.approx({"step": 1.0, "start": 6.1 / 6})
    assert lines[1].split() == ["1.02", "alike", "start"]
    before, now = results(of, 1e9, step=1.0, start=1.0, old=1.0), results(of, 1e9, step=1.3, start=0.5, new=9.0)
    lines, is_slower = of.compare(now, before)
    changes = [line.split()[1:3] for line in lines[1:]]
    assert is_slower and changes == [["slower", "step"], ["faster", "start"], ["missing", "old"]]
    assert not of.compare(now, before, threshold=1.31)[1]
    assert "1.25" in lines[0] and "made up" in lines[0]


def test_results_are_kept_and_read(bench, tmp_path):
    _, of = bench
    assert of.measured("svgp ours m=5", 0.5, "float32") == 0.5
    kept = of.Results.of_this_process({"product_rates": {"float32": 4e9}})
    of.require_writable(tmp_path / "bench.json")
    assert not [*tmp_path.iterdir()]  # nothing is left by a bench that is interrupted
    kept.write(tmp_path / "bench.json")
    again = of.Results.read(tmp_path / "bench.json")
    assert again == kept and again.products("svgp ours m=5") == 2e9


@pytest.mark.parametrize(
    "content", [b"[1]", b"", b"\xff\xfe", *(kept(*of).encode() for of in [(None, 1), (1, "NaN"), (1, 0)])]
)
def test_a_file_that_cannot_be_compared_is_refused_in_a_line(bench, tmp_path, content):
    _, of = bench
    (tmp_path / "bench.json").write_bytes(content)
    mended = "make it with scripts/bench NAME --save FILE$"
    with pytest.raises(SystemExit, match=rf"bench\.json: not the results of a bench; {mended}"):
        of.Results.read(tmp_path / "bench.json")
    for path, why in {"none.json": "no such file or directory", ".": "is a directory"}.items():
        with pytest.raises(SystemExit, match=f": {why}; {mended}"):
            of.Results.read(tmp_path / path)


def test_a_place_without_a_folder_is_refused_before_anything_is_measured(command, tmp_path):
    main, measured = command
    for path, why in {tmp_path / "a" / "x.json": f"no such folder {tmp_path / 'a'}", tmp_path: "is a folder"}.items():
        with pytest.raises(SystemExit, match=f"--save {path}: {why}$"):
            main(["start", "--save", str(path)])
    assert not measured and not [*tmp_path.iterdir()]


def test_a_file_with_no_result_of_this_bench_never_passes(command, bench, tmp_path, capsys):
    main, measured = command
    _, of = bench
    results(of, 1e9).write(tmp_path / "empty.json")
    with pytest.raises(SystemExit, match=r"empty\.json: it has no results; make it with"):
        main(["start", "--against", str(tmp_path / "empty.json")])
    assert not measured
    results(of, 1e9, other=1.0).write(tmp_path / "other.json")
    with pytest.raises(SystemExit, match=r"other\.json: it has other results than this bench"):
        main(["start", "--against", str(tmp_path / "other.json")])
    results(of, 1e9, **dict.fromkeys(measured, 0.1)).write(tmp_path / "quick.json")
    assert main(["start", "--against", str(tmp_path / "quick.json")]) == 1
    assert "5.00  slower" in capsys.readouterr().out


def test_help_of_a_bench_has_its_options_and_sizes_are_whole_numbers_of_their_count(command, capsys, bench):
    main, _ = command
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["start", "--help"])
    text = capsys.readouterr().out
    assert all(f"--{name}" in text for name in ("rounds", "save", "against", "threshold", "wait"))
    assert text.startswith("usage: scripts/bench start") and "Python's own" in text
    from benches._results import count, sizes

    assert (sizes(2)("1e4,0"), sizes(3)("100,50,2"), count("3")) == ((10_000, 0), (100, 50, 2), 3)
    for reader, text in [(sizes(2), "text"), (sizes(2), "100"), (sizes(3), "0,0,0"), (sizes(2), "5,-1"), (count, "0")]:
        with pytest.raises(ValueError):
            reader(text)


def test_the_machine_says_what_else_runs_and_seconds_to_an_accuracy_count_from_the_start(bench):
    machine, _ = bench
    used = {"python": 1.5, "git": 0.12, "sh": 0.03, "ps": 0.01}
    assert ": python 1.5, git 0.1, sh 0.0" in machine.report(used) and machine.report(used).startswith("1.7 of ")
    assert machine.report({"sh": 0.01}) == "nothing else runs on the cores"
    if sys.platform == "linux":
        facts = machine.facts()
        assert {"cpu", "cores", "versions", "commit", "blas", "load", "others"} <= facts.keys() and facts["blas"]
    from benches.accuracy import Timing

    run = Timing.of(19.0, {"start": 2.0, "init": 1.0, "train": 9.0, "evaluate": 5.0}, 20.0, [[3.0, 0.5], [9.0, 0.2]])
    assert run.points == [(6.0, 0.5), (12.0, 0.2)] and run.seconds["end"] == 2.0
    assert (run.until(0.5), run.until(0.2), run.until(0.1)) == (6.0, 12.0, float("inf"))


ROOT = Path(__file__).resolve().parents[2]


def test_the_words_of_a_run_have_its_id_alone():
    words = again.commands(["svdgp/table3", "gam/classification"])
    ids = [*list(words)[::10], list(words)[-1]]
    assert len(ids) > 3
    assert [[run.id for run in plan.runs] for plan in plans([words[id] for id in ids])] == [[id] for id in ids]


def test_a_difference_is_in_standard_deviations_over_the_cell():
    store = open_store(ROOT / "results/aep_dgp/records.parquet")
    cell = [record for record in store.all() if record.cell == store.all()[0].cell]
    old = cell[0]
    assert again.difference(old, old, cell) == 0
    spread = max(r.metrics["rmse"] for r in cell) - min(r.metrics["rmse"] for r in cell)
    moved = dataclasses.replace(old, metrics=dict(old.metrics) | {"rmse": old.metrics["rmse"] + spread})
    assert again.difference(old, moved, cell) > 1
    undefined = dataclasses.replace(old, metrics=dict(old.metrics) | {"rmse": None})
    assert again.difference(old, undefined, cell) == math.inf and again.difference(old, old, [*cell, undefined]) == 0
    assert again.difference(undefined, undefined, cell) == 0
    by_rows = dataclasses.replace(old, row_stderr=dict.fromkeys(old.metrics, 2 * spread))
    assert again.difference(by_rows, dataclasses.replace(moved), [by_rows]) == pytest.approx(0.5)
    assert again.difference(old, None, cell) == math.inf
    assert again.difference(old, dataclasses.replace(old, id="0" * 16), cell) == math.inf
    lost = dataclasses.replace(old, status="failed", message="no predictions after 22 CPU seconds", metrics={})
    assert again.difference(lost, lost, [lost]) == 0 and again.difference(lost, old, cell) == math.inf


@pytest.fixture(scope="module")
def rows():
    with (ROOT / "results/gpbench/cores.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_cells_that_are_measured_are_committed_and_rows_agree_with_their_own_numbers(rows):
    made = plans([[*words.split(), "split=0"] for _, words in cores.CELLS])
    cells = []
    for (experiment, _), plan in zip(cores.CELLS, made, strict=True):
        store = open_store(ROOT / "results" / experiment.split("/")[0] / "records.parquet")
        record = store.get(plan.runs[0].id)
        cells.append((experiment, record.dataset, record.method, record.setting))
    assert cells == [*dict.fromkeys(tuple(row[name] for name in list(row)[:4]) for row in rows)]
    for row in rows:
        for name, of in (("shift", "2 cores"), ("committed shift", "committed")):
            if row["standard error"]:
                change = abs(float(row[of]) - float(row["1 core"])) / float(row["standard error"])
                assert float(row[name]) == pytest.approx(change, rel=0.06, abs=2e-6)


def test_a_shift_is_a_multiple_of_the_standard_error_of_the_cell():
    store = open_store(ROOT / "results/gam/records.parquet")
    one = next(record for record in store.all() if record.dataset == "boston")
    cell = [record for record in store.all() if record.cell == one.cell]
    two = dataclasses.replace(one, metrics={**one.metrics, "rmse": one.metrics["rmse"] - 0.25})
    stderr = np.std([record.metrics["rmse"] for record in cell], ddof=1) / np.sqrt(len(cell))
    made = cores.shift(one, two, cell, "rmse")
    assert float(made["shift"]) == pytest.approx(0.25 / stderr, rel=0.05)
    assert float(made["committed shift"]) == 0 and made["splits"] == str(len(cell))
    assert cores.shift(one, two, [one], "rmse")["shift"] == ""  # one split has no standard error
