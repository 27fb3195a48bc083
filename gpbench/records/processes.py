"""Processes that leave claims and folders: each is known by its machine, its id and its start.

An id alone is given out again, and another machine that shares the disk has the same ids.
"""

import contextlib
import hashlib
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def alive(pid: int) -> bool:
    """True if this host has a process of this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def facts() -> dict[str, Any]:
    """What identifies this process: those of `_machine`, `pid` and `start`."""
    return {**_machine(), "pid": os.getpid(), "start": _start(os.getpid())}


def ended(facts: Mapping[str, Any]) -> bool:
    """True if the process with these facts is known to have ended, which only one of the same machine can tell.

    Facts of an earlier gpbench say too little of the machine: that process is not known to have ended.
    """
    pid = facts.get("pid")
    if any(facts.get(key) != fact for key, fact in _machine().items()) or type(pid) is not int or not 0 < pid < 2**31:
        return False
    then, now = facts.get("start"), _start(pid)
    return not alive(pid) or (then is not None and now is not None and then != now)


def name() -> str:
    """This process in a part of a file's name: its id, its start, and a digest of its machine."""
    return f"{os.getpid()}.{_start(os.getpid()) or ''}.{_digest()}"


def named_has_ended(name: str) -> bool | None:
    """Whether the process of a `name` has ended; None where it was one of another machine.

    A name of an earlier gpbench is an id alone.  Raises ValueError for a text that is no name.
    """
    id, start, machine = [*name.split("."), "", ""][:3]
    if machine and machine != _digest():
        return None
    return not alive(int(id)) or bool(start and _start(int(id)) not in (None, start))


def _digest() -> str:
    return hashlib.sha256(json.dumps(_machine()).encode()).hexdigest()[:8]


def _machine() -> dict[str, str | None]:
    """The host, its boot, and its namespace of process ids, of which each container has one.

    Two machines may have one name and namespaces of one number, and never have the same boot.
    """
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
