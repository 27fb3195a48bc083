"""Claims on runs in training: a file for each run in `results/claims/`, created exclusively by the process that trains
it.  A claim is dead when its process has ended on the same machine, or when its heartbeat has been silent for long."""

import contextlib
import fcntl
import json
import math
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gpbench import limits
from gpbench.errors import ClaimedError, printable
from gpbench.records import processes
from gpbench.records.folder import plain
from gpbench.records.store import storage_error

_BEAT_S = 15.0
_SILENT_S = 120.0
"""A claim silent for so long is dead: many heartbeats, so that slow disks and clocks that differ do no harm."""


@contextlib.contextmanager
def claim(results: Path | str, ids: Iterable[str]) -> Iterator[None]:
    """Hold these runs, all of them or none, while they are trained.  Raises ClaimedError: another process has one."""
    folder, held = Path(results) / "claims", list[Path]()
    over = threading.Event()
    beat = threading.Thread(target=_beat, args=(held, over), daemon=True)
    try:
        for id in sorted(ids):  # in one order, so that of two processes one gets them all
            _take(folder / id)
            held.append(folder / id)
        beat.start()
        yield
    finally:
        over.set()
        release(results, [path.name for path in held])
        with contextlib.suppress(OSError):  # others' claims are in it
            folder.rmdir()


def release(results: Path | str, ids: Iterable[str]) -> None:
    """Remove the claims of this process on these runs; after a long silence another process may have taken them."""
    for id in ids:
        path = Path(results) / "claims" / id
        with contextlib.suppress(OSError), _locked(path):
            if _content(path) == processes.facts():
                path.unlink()


def holder(results: Path | str, id: str) -> str | None:
    """The process that holds a run, as in "process 7 on node1"; None where none does that is alive."""
    path = Path(results) / "claims" / id
    try:
        silent = _silence(path)
        claim = _content(path)
    except (FileNotFoundError, NotADirectoryError):  # the latter where the results folder is a file
        return None
    if silent > _SILENT_S or processes.ended(claim):
        return None
    pid, host = (printable(str(claim.get(key)))[:100] for key in ("pid", "host"))
    return f"process {pid} on {host}" if claim else "another process"


def _content(path: Path) -> dict[str, Any]:
    """The claim in a file; empty where it is being written, or damaged: alive until it has been silent for long."""
    try:
        claim = plain(limits.read(path, limits.CLAIM).decode())
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError, RecursionError):
        return {}
    return claim if isinstance(claim, dict) else {}


def _silence(path: Path) -> float:
    """Seconds since the last heartbeat.  One from the future, of another clock, is watched for the next ones."""
    beat = path.stat().st_mtime
    if beat < time.time() + _BEAT_S:
        return time.time() - beat
    end = time.monotonic() + 2 * _BEAT_S
    while time.monotonic() < end:
        if path.stat().st_mtime != beat:
            return 0.0
        time.sleep(_BEAT_S / 20)
    return math.inf


def _take(path: Path) -> None:
    for _ in range(3):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "x") as file:
                json.dump(processes.facts(), file)
            return
        except FileNotFoundError as error:
            if not path.parent.parent.is_dir():  # the results folder cannot be created
                raise storage_error(path.parent.parent, error) from error
            continue  # another process has just removed the empty folder
        except FileExistsError:
            _remove_dead(path)
        except OSError as error:
            with contextlib.suppress(OSError):  # it may have been created, and not written
                path.unlink()
            raise storage_error(path.parent.parent, error) from error
    other = holder(path.parent.parent, path.name) or "another process"
    mend = "when it has ended, the same command finds the record"
    raise ClaimedError(f"{other} is training run {path.name} already; {mend}")


def _remove_dead(path: Path) -> None:
    """Removes the claim if it is dead."""
    with contextlib.suppress(FileNotFoundError):
        before = path.stat()
        if holder(path.parent.parent, path.name):
            return
        with _locked(path):
            if (now := path.stat()).st_ino == before.st_ino and now.st_mtime_ns == before.st_mtime_ns:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Locks the file of a claim, so that of several processes one removes it, and none the claim that follows."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # another user's, or a file system without locks
            # NFS locks only files that are open for writing
            file = os.open(path, os.O_NONBLOCK | (os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY))
            stack.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _beat(held: list[Path], over: threading.Event) -> None:
    while not over.wait(_BEAT_S):
        for path in held:
            with contextlib.suppress(OSError):
                if _content(path) == processes.facts():
                    os.utime(path)
