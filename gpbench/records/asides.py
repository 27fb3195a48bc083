"""Folders of runs that are set aside while a record is written, replaced or deleted, and what killed processes left.

Their names are `.tmp-ID-PROCESS-RANDOM`, and that with `-old` where it is the record that is replaced.
"""

import secrets
import shutil
import time
from pathlib import Path

from gpbench.records import processes

_STALE_SECONDS = 3600.0
_SILENT_SECONDS = 120.0
OLD = "-old"


def path_of(runs: Path, id: str) -> Path:
    """A new name beside the run, of this process."""
    return runs / f".tmp-{id}-{processes.name()}-{secrets.token_hex(4)}"


def restore(runs: Path, id: str = "*") -> list[str]:
    """Puts back the records that killed processes had moved aside and not replaced; their ids.

    Those of another machine count as killed when they have been silent for long: writing takes them a moment.
    """
    restored = []
    for aside in runs.glob(f".tmp-{id}-*{OLD}"):
        try:
            id, process = aside.name.removeprefix(".tmp-").split("-")[:2]
            ended = processes.named_has_ended(process)
            if ended is None:
                ended = time.time() - aside.stat().st_ctime > _SILENT_SECONDS
            if ended and not aside.with_name(id).exists():
                aside.rename(aside.with_name(id))
                restored.append(id)
        except (OSError, ValueError):  # another process was quicker, or it is no folder of ours
            continue
    return restored


def clean(runs: Path) -> None:
    """Deletes what killed processes left: old, and of a process that has ended or of another machine."""
    for aside in runs.glob(".tmp-*"):
        try:
            old = time.time() - aside.stat().st_mtime > _STALE_SECONDS
            if old and processes.named_has_ended(aside.name.split("-")[2]) is not False:
                shutil.rmtree(aside, ignore_errors=True)
        except (OSError, ValueError, IndexError):
            continue
