"""Sweeps through submitit: on a real Slurm of one node, and on submitit's local executor."""

import signal
import subprocess

import pytest
import slurm
from commands import RUN, gpbench, start, wait_for

from gpbench.records.store import Store

ON_SLURM = [*RUN, "-m", "hydra/launcher=slurm", "hydra.launcher.partition=main"]
LOCAL = [*RUN, "-m", "hydra/launcher=local", "run.jobs=2"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """What a command must have in its environment to find the Slurm of these tests."""
    if absent := slurm.missing():
        pytest.skip(f"no Slurm here: {', '.join(absent)} (Debian has them in slurm-wlm and munge)")
    with slurm.cluster(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


def _queue(cluster) -> list[str]:
    command = ["squeue", "--noheader", "--array", "--format=%T"]
    return subprocess.run(command, env=cluster, capture_output=True, text=True, check=True).stdout.split()


def _claims(folder) -> int:
    return len(list((folder / "results" / "claims").glob("[!.]*")))


def test_jobs_of_slurm_are_judged_like_those_of_this_machine(tmp_path, cluster):
    words = ["method.fate=done,error,diverged,killed"]
    code, out, err = gpbench(tmp_path, *ON_SLURM, *words, **cluster)
    assert code == 6 and err == "gpbench: 2 of 4 jobs failed, as listed above\n"
    assert "4 jobs: 1 done, 1 diverged, 2 failed\n" in out
    for line in ("failed: fated to fail", "failed: killed by SIGKILL", "diverged: split 0 diverged"):
        assert line in out


def test_what_went_well_leaves_records_alone_and_is_not_submitted_again(tmp_path, cluster):
    for summary in ("2 done", "2 already"):
        code, out, err = gpbench(tmp_path, *ON_SLURM, "seed=0,1", **cluster)
        assert (code, err) == (0, "") and out.endswith(f"2 jobs: {summary}\n")
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["runs"]


def test_a_job_that_slurm_stops_before_its_time_limit_is_submitted_again_and_goes_on(tmp_path, cluster):
    log = tmp_path / "log"
    sweep = start(tmp_path, *ON_SLURM, "seed=0", "method.seconds=4", FAKE_LOG=str(log), **cluster)
    wait_for(log.exists)  # it trains
    # What Slurm sends at --signal=TERM@120, a limit of minutes being too long for a test
    subprocess.run(["scancel", "--signal=TERM", "--name=gpbench"], env=cluster, check=True)
    out, err = sweep.communicate(timeout=60)
    assert (sweep.returncode, err) == (0, "") and out.endswith("1 job: 1 done\n")
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["train", "train", "record"]


@pytest.mark.parametrize("pack", [1, 2])
def test_more_jobs_than_an_array_holds_go_as_room_comes_some_in_one_task(tmp_path, cluster, pack):
    """Of at most four tasks, as the Slurm of these tests has it."""
    code, out, err = gpbench(tmp_path, *ON_SLURM, "seed=range(0,10)", f"hydra.launcher.pack={pack}", **cluster)
    assert (code, err) == (0, "") and out.endswith("10 jobs: 10 done\n")
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["runs"]
    assert len(Store(tmp_path / "results").ids()) == 10


def test_a_failed_job_of_a_task_leaves_the_others_their_outcomes_and_a_stop_begins_no_other(tmp_path, cluster):
    code, out, _ = gpbench(tmp_path, *ON_SLURM, "method.fate=done,error,killed", "hydra.launcher.pack=3", **cluster)
    assert code == 6 and "3 jobs: 1 done, 2 failed\n" in out
    more, log = ["seed=0,1", "method.seconds=4", "hydra.launcher.pack=2", "hydra.launcher.resubmit=0"], tmp_path / "log"
    sweep = start(tmp_path, *ON_SLURM, *more, FAKE_LOG=str(log), **cluster)
    wait_for(log.exists)
    subprocess.run(["scancel", "--signal=TERM", "--name=gpbench"], env=cluster, check=True)
    out, _ = sweep.communicate(timeout=60)
    assert sweep.returncode == 75 and "2 jobs: 2 stopped\n" in out
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["train"]


def test_ctrl_c_cancels_what_is_submitted_and_the_same_command_goes_on(tmp_path, cluster):
    words = [*ON_SLURM, "seed=0,1", "method.seconds=2", "hydra.launcher.array_parallelism=1"]
    log = tmp_path / "log"
    sweep = start(tmp_path, *words, FAKE_LOG=str(log), **cluster)
    wait_for(log.exists)  # it trains
    sweep.send_signal(signal.SIGINT)
    out, err = sweep.communicate(timeout=60)
    assert sweep.returncode == 75 and err.endswith("gpbench: SIGINT; jobs left: 2; run the same command to resume\n")
    assert "SIGINT: the submitted jobs are cancelled; those that run write a checkpoint\n" in out
    assert "SIGTERM: stopped at a checkpoint" in out and out.endswith("2 jobs: 2 stopped\n")
    assert len(list((tmp_path / "results" / "checkpoints").iterdir())) == 1
    wait_for(lambda: not _queue(cluster))
    words[-1] = "hydra.launcher.array_parallelism=2"
    assert gpbench(tmp_path, *words, **cluster)[1].endswith("2 jobs: 2 done\n")


def test_what_a_killed_sweep_submitted_is_not_trained_twice(tmp_path, cluster):
    words, log = [*ON_SLURM, "seed=0,1", "method.seconds=3"], tmp_path / "log"
    first = start(tmp_path, *words, FAKE_LOG=str(log), **cluster)
    wait_for(lambda: _claims(tmp_path) >= 1)
    first.kill()
    first.communicate()
    code, out, err = gpbench(tmp_path, *words, FAKE_LOG=str(log), **cluster)
    assert (code, err) == (0, "") and "2 jobs: " in out
    assert log.read_text().count("train") == len(Store(tmp_path / "results").all()) == 2


def test_a_job_that_vanishes_from_the_queue_has_failed(tmp_path, cluster):
    sweep = start(tmp_path, *ON_SLURM, "seed=0", "method.seconds=60", "method.fate=deaf", **cluster)
    wait_for(lambda: _claims(tmp_path) == 1)
    subprocess.run(["scancel", "--signal=KILL", "--name=gpbench"], env=cluster, check=True)
    out, _ = sweep.communicate(timeout=60)
    assert sweep.returncode == 6 and "ended without a result" in out and "_log.err" in out


def test_what_sbatch_refuses_is_one_line(tmp_path, cluster):
    code, _, err = gpbench(tmp_path, *ON_SLURM[:-1], "seed=0,1", "hydra.launcher.partition=none", **cluster)
    assert code == 2 and err.startswith("gpbench: Slurm does not take the jobs") and "partition" in err
    assert err.count("\n") == 1


def test_the_local_executor_runs_the_same_jobs(tmp_path):
    code, out, err = gpbench(tmp_path, *LOCAL, "method.fate=done,error")
    assert code == 6 and err == "gpbench: 1 of 2 jobs failed, as listed above\n"
    assert "2 jobs: 1 done, 1 failed\n" in out and "failed: fated to fail" in out


def test_the_local_executor_stops_at_a_checkpoint(tmp_path):
    sweep = start(tmp_path, *LOCAL, "seed=0,1,2", "method.seconds=60")
    wait_for(lambda: _claims(tmp_path) == 2)
    sweep.send_signal(signal.SIGTERM)
    out, err = sweep.communicate(timeout=60)
    assert sweep.returncode == 75 and err == "gpbench: SIGTERM; jobs left: 3; run the same command to resume\n"
    assert len(list((tmp_path / "results" / "checkpoints").iterdir())) == 2
    assert "3 jobs: 3 stopped\n" in out


def test_a_mistake_is_one_line(tmp_path):
    for words, line in (
        (["hydra/launcher=slum"], "hydra/launcher=slum: no such hydra/launcher; did you mean slurm"),
        (["hydra/launcher=local", "hydra.launcher.timeout_min=long"], "hydra.launcher.timeout_min=long: must be"),
        (["hydra/launcher=slurm", "hydra.launcher.additional=3", "--dry-run"], "additional=3: must be a mapping"),
        (["hydra/launcher=local", "hydra.launcher.partition=gpu"], "no key 'partition' in hydra.launcher"),
        (["hydra.launcher.pack=2", "--dry-run"], "name its launcher too, as in hydra/launcher=slurm"),
        (["hydra/launcher=slurm"], "no sbatch, squeue, scancel and scontrol here"),
    ):
        without = {"PATH": "/nowhere"} if words == ["hydra/launcher=slurm"] else {}
        code, out, err = gpbench(tmp_path, *RUN, "-m", *words, **without)
        assert (code, out) == (2, "") and line in err and err.count("\n") == 1
    (tmp_path / "submitit.py").write_text("raise ImportError")  # in the current folder, and so found first
    code, _, err = gpbench(tmp_path, *LOCAL)
    assert code == 2 and "-e '.[cluster]' in the checkout" in err and err.count("\n") == 1
