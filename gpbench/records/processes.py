"""Processes that leave claims and folders, each known by its machine, its id and its start, and what killed ones left:
folders `.tmp-ID-PROCESS-RANDOM`, set aside while a record is written, replaced or deleted, with `-old` for the record
that is replaced."""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_STALE_SECONDS = 3600.0
_SILENT_SECONDS = 120.0
OLD = "-old"


def facts() -> dict[str, Any]:
    """Facts that identify this process: those of `_machine`, `pid` and `start`."""
    return {**_machine(), "pid": os.getpid(), "start": _start(os.getpid())}


def ended(facts: Mapping[str, Any]) -> bool:
    """True if the process with these facts is known to have ended, which only one of the same machine can tell."""
    pid = facts.get("pid")
    if any(facts.get(key) != fact for key, fact in _machine().items()) or type(pid) is not int or not 0 < pid < 2**31:
        return False
    return _has_ended(pid, facts.get("start"))


def name() -> str:
    """This process in a part of a file's name: its id, its start, and a digest of its machine."""
    return f"{os.getpid()}.{_start(os.getpid()) or ''}.{_digest()}"


def _named_has_ended(name: str) -> bool | None:
    """Whether the process of a `name` has ended; None for another machine.  Raises ValueError."""
    id, start, machine = [*name.split("."), "", ""][:3]
    if machine and machine != _digest():
        return None
    return _has_ended(int(id), start)


def _has_ended(pid: int, start: str | None) -> bool:
    """True if this host has no process of this id, or one that started at another time than stated."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is another user's
        pass
    return bool(start and _start(pid) not in (None, start))


def _digest() -> str:
    return hashlib.sha256(json.dumps(_machine()).encode()).hexdigest()[:8]


def _machine() -> dict[str, str | None]:
    """The host, its boot and its namespace of process ids, which no other machine or container has together."""
    boot = pids = None
    with contextlib.suppress(OSError):  # not Linux
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        pids = os.readlink("/proc/self/ns/pid")
    return {"host": socket.gethostname(), "boot": boot, "pids": pids}


def _start(pid: int) -> str | None:
    """The time at which a process started, in clock ticks since the boot; None where that is unknown."""
    try:
        # behind its name, which is in parentheses and may have others, stand the fields from the third
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def aside(runs: Path, id: str) -> Path:
    """A new name beside the run, of this process."""
    return runs / f".tmp-{id}-{name()}-{secrets.token_hex(4)}"


def restore(runs: Path, id: str = "*") -> list[str]:
    """Puts back the records that killed processes, or silent ones of other machines, had moved aside; their ids."""
    restored = []
    for folder in runs.glob(f".tmp-{id}-*{OLD}"):
        try:
            id, process = folder.name.removeprefix(".tmp-").split("-")[:2]
            ended = _named_has_ended(process)
            if ended is None:
                ended = time.time() - folder.stat().st_ctime > _SILENT_SECONDS
            if ended and not folder.with_name(id).exists():
                folder.rename(folder.with_name(id))
                restored.append(id)
        except (OSError, ValueError):  # another process was quicker, or it is no folder of ours
            continue
    return restored


def delete_stale(runs: Path) -> None:
    """Deletes what killed processes left: old, and of a process that has ended or of another machine."""
    for folder in runs.glob(".tmp-*"):
        try:
            old = time.time() - folder.stat().st_mtime > _STALE_SECONDS
            if old and _named_has_ended(folder.name.split("-")[2]) is not False:
                shutil.rmtree(folder, ignore_errors=True)
        except (OSError, ValueError, IndexError):
            continue
