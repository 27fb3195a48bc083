"""`gpbench run -m`: every job in a fresh process, whatever becomes of the others."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import ON_NODE2, RUN, environment, first_line, gpbench, start, wait_for
from forked import alive

from gpbench.errors import ConfigError
from gpbench.records.store import Store
from gpbench.sweep import launcher
from gpbench.train.stop import SIGNALS

SWEEP = [*RUN, "-m", "run.jobs=2"]


def _trainings(log: Path) -> int:
    """How many trainings have begun, of those that note it in `log`."""
    return log.read_text().count("train") if log.exists() else 0


def test_all_combinations_are_run_and_leave_records_alone(tmp_path):
    code, out, err = gpbench(tmp_path, *SWEEP, "split=0,1,2", "seed=0,1")
    assert (code, err) == (0, "")
    hint, _, out = out.partition("\n")
    assert hint == "hint: split=0,1,2 is 3 jobs; split=[0,1,2] is one, and faster"
    assert out.startswith("6 jobs: dataset=toy method=fake protocol=plain\n")
    assert out.endswith("6 jobs: 6 done\n") and "split=2 seed=1  nll 1.75" in out
    assert len(Store(tmp_path / "results").all()) == 6
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_a_key_is_set_for_the_chosen_methods_that_have_it_and_several_splits_are_jobs(monkeypatch, capsys):
    both, launched = "method=sep,logistic", []
    lacks = "method.inducing: sep has it, logistic does not; optional.method.inducing=VALUE sets it only where"
    with pytest.raises(ConfigError, match=lacks):
        launcher.sweep([both, "method.inducing=0.1"], [])
    monkeypatch.setattr(launcher.Jobs, "launch", lambda self, jobs: launched.extend(jobs))
    assert launcher.sweep(["method=svdgp,odsvgp", "run.jobs=2", "method.mean_basis=64"], []) == 0
    assert launched == [[f"method={name}", "method.mean_basis=64"] for name in ("svdgp", "odsvgp")]
    launched.clear()
    capsys.readouterr()
    launcher.sweep([both, "optional.method.inducing=0.1,0.2"], [])
    assert launched == [*(["method=sep", f"method.inducing={m}"] for m in (0.1, 0.2)), ["method=logistic"]]
    assert capsys.readouterr().out.startswith("method.inducing is not set for logistic: no such key\n")
    with pytest.raises(ConfigError, match=r"no job has the key method\.inducin; did you mean inducing"):
        launcher.sweep([both, "optional.method.inducin=0.1"], [])
    with pytest.raises(ConfigError, match=r"dataset, method and protocol each take a name"):
        launcher.sweep(["method=[sep]", "optional.method.steps=4"], [])
    monkeypatch.setattr(launcher.Jobs, "launch", lambda self, jobs: None)
    launcher.sweep(["method=logistic", "split=0,1"], [])
    assert capsys.readouterr().out.startswith("hint: split=0,1 is 2 jobs; ")


def test_a_list_is_one_job_and_a_sweep_is_planned_anew_where_its_words_name_the_environment(tmp_path):
    assert "2 jobs: " in gpbench(tmp_path, *RUN, "-m", "split=[0,1],all")[1]
    assert len(Store(tmp_path / "results").all()) == 3
    words = (*RUN, "-m", "split=0", "run.results=${oc.env:OUT}")
    for name in ("one", "other"):
        code, out, _ = gpbench(tmp_path, *words, OUT=str(tmp_path / name))
        assert code == 0 and out.endswith("1 job: 1 done\n")
        assert len(Store(tmp_path / name).all()) == 1


def test_failures_stop_nothing_and_are_told_at_the_end(tmp_path):
    code, out, err = gpbench(tmp_path, *SWEEP, "method.fate=error,bug,killed,vanishes,diverged,done")
    assert code == 6 and err == "gpbench: 4 of 6 jobs failed, as listed above\n"
    summary = out.partition("6 jobs: 1 done, 1 diverged, 4 failed\n")[2]
    assert summary.count("gpbench run ") == 5
    for line in ("failed: fated to fail", "failed: ValueError: a bug of ours", "failed: killed by SIGKILL"):
        assert line in summary
    assert "failed: its process ended without an answer" in summary
    assert "method.fate=bug" in summary and "method.fate=done" not in summary


def test_lost_runs_are_no_diverged_ones(tmp_path):
    for ending in ("1 done, 1 diverged, 1 lost\n", "1 already, 1 diverged, 1 lost\n"):
        code, out, err = gpbench(tmp_path, *SWEEP, "method.fate=done,diverged,failed")
        assert code == 4 and ending in out and "lost: split 0 failed (NaN at step 3); recorded as such" in out
        assert err == "gpbench: of 3 jobs 1 diverged and 1 lost, as listed above\n"


@pytest.mark.parametrize("to_all", [False, True], ids=["to the first", "to all"])
@pytest.mark.parametrize("number", SIGNALS, ids=[number.name for number in SIGNALS])
def test_a_signal_is_passed_on_and_the_same_command_goes_on(tmp_path, number, to_all):
    log = tmp_path / "log"
    process = start(tmp_path, *SWEEP, "seed=0,1,2,3", "method.seconds=60", FAKE_LOG=str(log))
    wait_for(lambda: _trainings(log) == 2)
    for id in sorted(alive(str(tmp_path)), reverse=True) if to_all else [process.pid]:
        os.kill(id, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 75
    assert err == first_line(number) + f"gpbench: {number.name}; jobs left: 4; run the same command to resume\n"
    assert out.count("stopped at a checkpoint") == 2 and out.endswith("4 jobs: 4 stopped\n")
    assert len(list((tmp_path / "results" / "checkpoints").iterdir())) == 2
    assert alive(str(tmp_path)) == [] == list((tmp_path / "results").glob("claims/*"))


GONE = {
    "terminal": (signal.SIGHUP, "import os, sys; os.login_tty(0); os.execv(sys.argv[1], sys.argv[1:])"),
    "pipe": (signal.SIGINT, "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="a terminal of its own needs Linux")
@pytest.mark.parametrize("words", [RUN, SWEEP], ids=["run", "sweep"])
@pytest.mark.parametrize(("number", "code"), GONE.values(), ids=GONE)
def test_training_stops_at_a_checkpoint_where_nobody_reads_what_it_says(tmp_path, words, number, code):
    """A terminal that was closed, and `gpbench ... 2>&1 | tee log` where Ctrl-C ends tee first."""
    ours, theirs = pty.openpty() if number == signal.SIGHUP else os.pipe()
    command = [sys.executable, "-c", code, sys.executable, "-m", "gpbench", *words, "method.seconds=60"]
    log = tmp_path / "log"
    ends = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    process = subprocess.Popen(command, **ends, env=environment(tmp_path, FAKE_LOG=str(log)))
    os.close(theirs)
    wait_for(lambda: _trainings(log))
    os.close(ours)  # of a terminal, a SIGHUP
    if number == signal.SIGINT:
        process.send_signal(number)
    assert process.wait(timeout=60) == 75
    assert len(list((tmp_path / "results" / "checkpoints").iterdir())) == 1


def test_the_time_limit_is_that_of_the_whole_sweep(tmp_path):
    """Of a job that is soon over and three that sleep for minutes, the second one meets it and the others never start.

    The limit is several times what a sweep of such a short job has just taken, however busy the machine is.
    """
    log, began = tmp_path / "log", time.monotonic()
    assert gpbench(tmp_path, *RUN, "-m", "run.jobs=1", "method.seconds=0.1", "seed=1", timeout=600)[0] == 0
    limit = 3 + 3 * (time.monotonic() - began)
    jobs = ["method.seconds=0.1,601,602,603", "run.jobs=1", f"run.time_limit={limit:.1f}"]
    code, out, _ = gpbench(tmp_path, *RUN, "-m", *jobs, timeout=600, FAKE_LOG=str(log))
    assert code == 75 and "1 done, 3 stopped" in out
    assert _trainings(log) <= 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills the children of a killed parent")
def test_children_die_with_a_killed_parent(tmp_path):
    process = start(tmp_path, *SWEEP, "split=0,1", "method.seconds=60")
    wait_for(lambda: len(alive(str(tmp_path))) == 4)  # the sweep, the server of its jobs, and these
    process.kill()
    process.wait()
    wait_for(lambda: not alive(str(tmp_path)), seconds=30)


def test_a_second_ctrl_c_ends_a_sweep_at_once(tmp_path):
    log = tmp_path / "log"
    process = start(tmp_path, *SWEEP, "split=0,1", "method.fate=deaf", "method.seconds=60", FAKE_LOG=str(log))
    wait_for(lambda: _trainings(log) == 2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    wait_for(lambda: not alive(str(tmp_path)), seconds=30)


def test_a_sweep_of_the_real_thing(tmp_path):
    words = ["run", "-m", "dataset=wdbc", "method=constant,logistic", "split=0,1"]
    for summary in ("4 done", "4 already"):  # the sweep finds the records by identities that it works out by itself
        code, out, _ = gpbench(tmp_path, *words, fake=False)
        assert code == 0 and out.endswith(f"4 jobs: {summary}\n")


def test_what_is_recorded_starts_no_process_and_run_again_and_run_keep_do(tmp_path):
    log = tmp_path / "log"
    sweep = [*SWEEP, "seed=0,1"]
    gpbench(tmp_path, *sweep, FAKE_LOG=str(log))
    for more, trained, summary in (
        ([], 0, "2 already"),
        (["run.keep=true"], 2, "2 done"),
        (["run.keep=true"], 0, "2 already"),
        (["run.again=true"], 2, "2 done"),
    ):
        before = log.read_text().count("train")
        code, out, _ = gpbench(tmp_path, *sweep, *more, FAKE_LOG=str(log))
        assert code == 0 and out.endswith(f"2 jobs: {summary}\n")
        assert log.read_text().count("train") - before == trained


@pytest.mark.parametrize("before", [(), ON_NODE2], ids=["one host", "two hosts"])
def test_two_sweeps_at_once_train_each_run_once(tmp_path, before):
    if before and (not shutil.which("unshare") or subprocess.run([*before, "true"]).returncode):
        pytest.skip("a host's name of its own needs root and unshare")
    words = [*SWEEP, "seed=range(0,3)", "method.seconds=0.5"]
    sweeps = [start(tmp_path, *words, before=b, FAKE_LOG=str(tmp_path / "log")) for b in ((), before)]
    outputs = [sweep.communicate(timeout=200) for sweep in sweeps]
    assert [sweep.returncode for sweep in sweeps] == [0, 0], outputs
    assert all(err == "" and out.count("[") == 3 for out, err in outputs), outputs
    counts = [int(n) for out, _ in outputs for n in re.findall(r"(\d+) done", out.splitlines()[-1])]
    assert sum(counts) == 3
    trained = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("train")]
    assert len(trained) == len(set(trained)) == 3


def test_a_sweep_takes_over_what_a_killed_one_trained(tmp_path):
    words = [*SWEEP, "seed=0,1", "method.seconds=3"]
    first = start(tmp_path, *words)
    wait_for(lambda: len(list((tmp_path / "results" / "claims").glob("*"))) == 2)
    second = start(tmp_path, *words)
    time.sleep(2)
    first.kill()
    first.communicate()
    out, err = second.communicate(timeout=30)
    assert (second.returncode, err) == (0, "") and out.endswith("2 jobs: 2 done\n")


def test_a_run_that_another_process_trains_is_one_line(tmp_path):
    first = start(tmp_path, *RUN, "method.seconds=60")
    wait_for(lambda: list((tmp_path / "results" / "claims").glob("*")))
    code, out, err = gpbench(tmp_path, *RUN, "method.seconds=60")
    assert (code, out) == (9, "") and f"process {first.pid} on " in err and err.count("\n") == 1
    first.kill()
    first.communicate()


def test_a_dry_run_lists_jobs_and_what_they_would_train_and_writes_nothing(tmp_path):
    assert gpbench(tmp_path, *RUN, "seed=0", "split=0")[0] == 0
    before = sorted(path.name for path in (tmp_path / "results" / "runs").iterdir())
    code, out, err = gpbench(tmp_path, *RUN, "-m", "--dry-run", "seed=0,1", "split=0")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == ["recorded  1 run  seed=0", "to train  1 of 1 run  seed=1", "2 jobs; 1 run to train"]
    assert gpbench(tmp_path, *RUN, "--dry-run", "seed=1")[1].endswith("1 job; 1 run to train\n")
    svi = ["dataset=wdbc", "method=svi", "method.inducing=100000,0.15"]
    code, out, err = gpbench(tmp_path, "run", "-m", "--dry-run", *svi, fake=False)
    assert code == 6 and "fails: method.inducing=100000: there are 512 training rows" in out
    assert out.endswith("2 jobs; 20 runs to train\n") or out.endswith("2 jobs; 1 run to train\n")
    assert sorted(path.name for path in (tmp_path / "results" / "runs").iterdir()) == before
    assert not (tmp_path / "results" / "claims").exists() or not any((tmp_path / "results" / "claims").iterdir())
