"""`gpbench run -m`: every job in a fresh process, whatever becomes of the others."""

import signal
import sys
import time
from pathlib import Path

import pytest
from commands import RUN, gpbench, start

from gpbench.records.store import Store

SWEEP = [*RUN, "-m", "run.jobs=2"]


def _alive(folder: Path) -> list[str]:
    """Command lines of the processes that run `gpbench` for the results in `folder`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (
                str(folder).encode() in (entry / "environ").read_bytes()
                and b"gpbench" in (entry / "cmdline").read_bytes()
            ):
                found.append(entry.name)
        except OSError:
            continue
    return found


def _when(condition, seconds: float = 20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_all_combinations_are_run_and_leave_records_alone(tmp_path):
    code, out, err = gpbench(tmp_path, *SWEEP, "split=0,1,2", "seed=0,1")
    assert (code, err) == (0, "")
    assert out.startswith("6 jobs: dataset=toy method=fake protocol=plain run.jobs=2\n")
    assert out.endswith("6 jobs: 6 done\n") and "split=2 seed=1  nll 0.75" in out
    assert len(Store(tmp_path / "results").all()) == 6
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_the_same_command_makes_only_what_is_missing(tmp_path):
    gpbench(tmp_path, *SWEEP, "split=0,1")
    code, out, _ = gpbench(tmp_path, *SWEEP, "split=0,1,2")
    assert code == 0 and out.endswith("3 jobs: 1 done, 2 already\n")


def test_a_list_is_one_job_and_not_a_sweep(tmp_path):
    assert "2 jobs: " in gpbench(tmp_path, *SWEEP, "split=[0,1],all", "run.jobs=1")[1]
    assert len(Store(tmp_path / "results").all()) == 3


def test_failures_stop_nothing_and_are_told_at_the_end(tmp_path):
    code, out, err = gpbench(tmp_path, *SWEEP, "method.fate=error,bug,killed,diverged,done")
    assert code == 6 and err == "gpbench: 3 of 5 jobs failed, as listed above\n"
    summary = out.partition("5 jobs: 1 done, 1 diverged, 3 failed\n")[2]
    assert summary.count("gpbench run ") == 4
    for line in ("failed: fated to fail", "failed: ValueError: a bug of ours", "failed: killed by SIGKILL"):
        assert line in summary
    assert "method.fate=bug" in summary and "method.fate=done" not in summary


def test_divergence_alone_has_its_own_exit_code(tmp_path):
    code, out, _ = gpbench(tmp_path, *SWEEP, "method.fate=done,diverged")
    assert code == 4 and "1 done, 1 diverged\n" in out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_and_the_same_command_goes_on(tmp_path, number):
    process = start(tmp_path, *SWEEP, "split=0,1,2,3", "method.seconds=60")
    _when(lambda: len(_alive(tmp_path)) == 3)
    time.sleep(1)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 75
    assert err == f"gpbench: {number.name}; jobs left: 4; the same command goes on\n"
    assert out.count("stopped at a checkpoint") == 2 and out.endswith("4 jobs: 4 stopped\n")
    assert _alive(tmp_path) == []


def test_the_time_limit_is_that_of_the_whole_sweep(tmp_path):
    began = time.monotonic()
    code, out, _ = gpbench(tmp_path, *SWEEP, "split=0,1,2,3", "run.jobs=1", "method.seconds=2", "run.time_limit=4")
    assert code == 75 and time.monotonic() - began < 8
    assert "1 done, 3 stopped" in out


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills the children of a killed parent")
def test_children_die_with_a_killed_parent(tmp_path):
    process = start(tmp_path, *SWEEP, "split=0,1", "method.seconds=60")
    _when(lambda: len(_alive(tmp_path)) == 3)
    process.kill()
    process.wait()
    _when(lambda: not _alive(tmp_path), seconds=2)


def test_a_second_ctrl_c_ends_a_sweep_at_once(tmp_path):
    process = start(tmp_path, *SWEEP, "split=0,1", "method.fate=deaf", "method.seconds=60")
    _when(lambda: len(_alive(tmp_path)) == 3)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=5) == 130
    _when(lambda: not _alive(tmp_path), seconds=2)


def test_a_sweep_of_the_real_thing(tmp_path):
    words = ["run", "-m", "dataset=wdbc", "method=constant,logistic", "split=0,1"]
    code, out, _ = gpbench(tmp_path, *words, fake=False)
    assert code == 0 and out.endswith("4 jobs: 4 done\n")
