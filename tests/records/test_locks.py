"""Claims: of all processes one trains a run, and a claim dies with its process."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest
from damaged import ended_pid

from gpbench.errors import ClaimedError, StorageError
from gpbench.records import locks

RACE = """
import fcntl, os, signal, sys, time
from gpbench.errors import ClaimedError
from gpbench.records.locks import claim

def die_with_it(parent):
    inside = os.open(sys.argv[1] + "/inside", os.O_CREAT | os.O_RDWR)
    while os.getppid() == parent:
        try:
            with claim(sys.argv[1], ["a"]):
                fcntl.flock(inside, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which the system lets go with its process
                time.sleep(0.001)
                os.kill(os.getpid(), signal.SIGKILL)
        except ClaimedError:
            pass
    os._exit(0)

for number in range(208):
    assert number < 8 or os.waitstatus_to_exitcode(os.wait()[1]) == -signal.SIGKILL
    if number < 200 and not os.fork():
        die_with_it(os.getppid())
"""


def _left(results, id, silent=0.0, **fields):
    """A claim that a process left, silent for so many seconds."""
    path = results / "claims" / id
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(fields))
    then = time.time() - silent
    os.utime(path, (then, then))


def test_a_claim_is_held_inside_and_gone_outside(tmp_path):
    with locks.claim(tmp_path, ["a", "b"]):
        assert locks.holder(tmp_path, "a") == f"process {os.getpid()} on {socket.gethostname()}"
        message = r"process \d+ on .* is training run b already"
        with pytest.raises(ClaimedError, match=message), locks.claim(tmp_path, ["0", "b"]):
            pass
        assert locks.holder(tmp_path, "0") is None
    assert locks.holder(tmp_path, "a") is None and not list(tmp_path.iterdir())


def test_on_another_host_a_claim_lives_as_long_as_it_is_heard(tmp_path):
    _left(tmp_path, "heard", silent=60, host="elsewhere", pid=1)
    _left(tmp_path, "silent", silent=600, host="elsewhere", pid=1)
    assert locks.holder(tmp_path, "heard") == "process 1 on elsewhere" and not locks.holder(tmp_path, "silent")
    with pytest.raises(ClaimedError, match="process 1 on elsewhere"), locks.claim(tmp_path, ["heard"]):
        pass
    with locks.claim(tmp_path, ["silent"]):
        pass


def _own_claim(results):
    with locks.claim(results, ["own"]):
        return json.loads((results / "claims" / "own").read_text())


@pytest.mark.parametrize("key", ["host", "boot", "pids"])
def test_another_machine_with_the_same_names_is_another_machine(key, tmp_path):
    _left(tmp_path, "a", **_own_claim(tmp_path) | {"pid": ended_pid(), key: "other"})
    assert locks.holder(tmp_path, "a")
    with pytest.raises(ClaimedError), locks.claim(tmp_path, ["a"]):
        pass


def test_a_process_that_ended_holds_nothing_and_a_claim_of_an_earlier_gpbench_until_it_is_silent(tmp_path):
    own = _own_claim(tmp_path)
    assert own["pid"] == os.getpid() and own["start"].isdigit()
    _left(tmp_path, "a", **own)
    _left(tmp_path, "b", **own | {"start": str(int(own["start"]) - 1)})
    _left(tmp_path, "c", **own | {"pid": ended_pid()})
    assert locks.holder(tmp_path, "a") and locks.holder(tmp_path, "b") is None is locks.holder(tmp_path, "c")
    before = {key: value for key, value in _own_claim(tmp_path).items() if key not in ("boot", "start")}
    _left(tmp_path, "a", **before | {"pid": ended_pid()})
    assert locks.holder(tmp_path, "a")
    _left(tmp_path, "a", silent=600, **before)
    assert locks.holder(tmp_path, "a") is None


DAMAGED = [b"", b"{", b"\0" * 90, b"[]", b'{"pid": 1e99, "host": "x"}', b'{"pid": 1, "pid": 2}', b"[" * 100_000]
DAMAGED += [b'{"pid": 7, "host": "' + b"x" * 10**6, b"9" * 4000, "a pipe", "a folder"]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_claim_blocks_no_longer_than_it_is_silent(tmp_path, content):
    _left(tmp_path, "a")
    path = tmp_path / "claims" / "a"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.unlink()
        os.mkfifo(path) if content == "a pipe" else (path / "folder").mkdir(parents=True)
    assert locks.holder(tmp_path, "a")
    os.utime(path, (0, 0))
    with locks.claim(tmp_path, ["a"]):
        pass


def test_a_holder_is_heard_and_a_claim_from_the_future_is_dead_unless_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_BEAT_S", 0.2)
    _left(tmp_path, "dead", silent=-3600, host="elsewhere", pid=1)
    assert locks.holder(tmp_path, "dead") is None
    _left(tmp_path, "alive", silent=-3600, host="elsewhere", pid=1)
    path = tmp_path / "claims" / "alive"
    threading.Timer(0.1, os.utime, (path, (time.time() + 3601,) * 2)).start()
    assert locks.holder(tmp_path, "alive") == "process 1 on elsewhere"
    monkeypatch.setattr(locks, "_BEAT_S", 0.05)
    with locks.claim(tmp_path, ["a"]):
        path = tmp_path / "claims" / "a"
        os.utime(path, (0, 0))
        for _ in range(100):
            if path.stat().st_mtime:
                break
            time.sleep(0.05)
        assert time.time() - path.stat().st_mtime < 60


def test_of_eight_processes_at_once_one_gets_a_run_and_200_are_killed_with_it(tmp_path):
    done = subprocess.run([sys.executable, "-c", RACE, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "claims").iterdir()] == ["a"] and locks.holder(tmp_path, "a") is None


def test_nobody_holds_a_run_where_the_results_folder_is_a_file_which_is_one_line(tmp_path):
    (tmp_path / "results").touch()
    assert locks.holder(tmp_path / "results", "a") is None  # a sweep would wait for ever
    with pytest.raises(StorageError, match="results is a file, and a"), locks.claim(tmp_path / "results", ["a"]):
        pass


def test_a_claim_that_another_process_took_over_after_a_silence_stays(tmp_path):
    with locks.claim(tmp_path, ["a"]):
        (tmp_path / "claims" / "a").unlink()
        _left(tmp_path, "a")
    assert (tmp_path / "claims" / "a").exists()
    locks.release(tmp_path, ["a", "b"])
    assert (tmp_path / "claims" / "a").exists()
