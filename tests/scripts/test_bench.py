"""`scripts/bench --save` and `--against`: what counts as slower, on results that are made up."""

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


def results(of, rate: float, **seconds: float):
    """Results in float64 with the product rate of a machine."""
    facts = {"commit": "abc", "cpu": "made up", "product_rates": {"float64": rate, "float32": 2 * rate}}
    return of.Results(facts, {name: {"seconds": s, "precision": "float64"} for name, s in seconds.items()})


def kept(rate, seconds) -> str:
    """The text of a file of --save with one result, without a product rate where that is None."""
    rates = "" if rate is None else f'"product_rates": {{"float64": {rate}}}'
    result = f'{{"seconds": {seconds}, "precision": "float64"}}'
    return f'{{"facts": {{{rates}}}, "results": {{"step": {result}}}}}'


def test_a_slower_machine_is_not_slower_code(bench):
    _, of = bench
    before, now = results(of, 2e9, step=1.0, start=3.0), results(of, 1e9, step=2.0, start=6.1)
    lines, is_slower = of.compare(now, before)
    assert not is_slower and now.ratios(before) == pytest.approx({"step": 1.0, "start": 6.1 / 6})
    assert lines[1].split() == ["1.02", "alike", "start"]


def test_what_takes_more_products_than_the_threshold_allows_is_slower(bench):
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
    of.require_writable(tmp_path / "new" / "bench.json")
    kept.write(tmp_path / "new" / "bench.json")
    again = of.Results.read(tmp_path / "new" / "bench.json")
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


def test_a_place_that_cannot_be_written_and_files_with_nothing_in_common_are_said(bench, tmp_path):
    _, of = bench
    with pytest.raises(SystemExit, match="Is a directory"):
        of.require_writable(tmp_path)
    lines, has_failed = of.compare(results(of, 1e9, step=1.0), results(of, 1e9, other=1.0))
    assert has_failed and lines[-1] == "nothing was measured in both"


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
