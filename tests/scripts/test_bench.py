"""`scripts/bench --save` and `--against`: what counts as slower, on results that are made up."""

import runpy
import sys
from pathlib import Path

import pytest

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
    _, of = bench
    before, now = results(of, 1e9, step=1.0, start=1.0, old=1.0), results(of, 1e9, step=1.3, start=0.5, new=9.0)
    lines, is_slower = of.compare(now, before)
    assert is_slower and [line.split()[1:3] for line in lines[1:]] == [
        ["slower", "step"],
        ["faster", "start"],
        ["missing", "old"],
    ]
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
    for path, why in {
        tmp_path / "new" / "x.json": f"no such folder {tmp_path / 'new'}",
        tmp_path: "is a folder",
    }.items():
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


def test_help_of_a_bench_has_its_options_and_those_of_all(command, capsys):
    main, _ = command
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["start", "--help"])
    text = capsys.readouterr().out
    assert all(f"--{name}" in text for name in ("rounds", "save", "against", "threshold", "wait"))
    assert text.startswith("usage: scripts/bench start") and "Python's own" in text


def test_the_machine_says_what_else_runs(bench):
    machine, _ = bench
    used = {"python": 1.5, "git": 0.12, "sh": 0.03, "ps": 0.01}
    assert ": python 1.5, git 0.1, sh 0.0" in machine.report(used) and machine.report(used).startswith("1.7 of ")
    assert machine.report({"sh": 0.01}) == "nothing else runs on the cores"
    if sys.platform == "linux":
        facts = machine.facts()
        assert {"cpu", "cores", "versions", "commit", "blas", "load", "others"} <= facts.keys() and facts["blas"]


def test_sizes_on_the_command_line_are_whole_numbers_of_their_count(bench):
    from benches._results import count, sizes

    assert (sizes(2)("1e4,0"), sizes(3)("100,50,2"), count("3")) == ((10_000, 0), (100, 50, 2), 3)
    for reader, text in [(sizes(2), "text"), (sizes(2), "100"), (sizes(3), "0,0,0"), (sizes(2), "5,-1"), (count, "0")]:
        with pytest.raises(ValueError):
            reader(text)


def test_seconds_to_an_accuracy_count_from_the_start_of_the_process(bench):
    from benches.accuracy import Timing

    run = Timing.of(19.0, {"start": 2.0, "init": 1.0, "train": 9.0, "evaluate": 5.0}, 20.0, [[3.0, 0.5], [9.0, 0.2]])
    assert run.points == [(6.0, 0.5), (12.0, 0.2)] and run.seconds["end"] == 2.0
    assert (run.until(0.5), run.until(0.2), run.until(0.1)) == (6.0, 12.0, float("inf"))
