"""Files that are read for as long as a run trains: whether they are still what their checksum was taken of."""

import ctypes
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpbench.errors import DataError, require


@dataclass(frozen=True)
class WatchedFile:
    """A file, with its inode, size and time of change (ns) when it was opened."""

    path: Path
    state: tuple[int, ...]

    def check(self) -> None:
        """Raises DataError where the file is not what it was."""
        mend = "nothing is recorded: run the same command again, and leave the file alone"
        require(_state(self.path) == self.state, f"{self.path} was changed while it was in use, and {mend}")


_watched: dict[Path, WatchedFile] = {}


def watch(path: Path) -> WatchedFile:
    """The file as it is now.  Where it is mapped and cut short, this process ends in one line.  The system says so by
    SIGBUS in the middle of a read, from which there is no way back into Python's code.
    """
    path = path.absolute()
    _watched[path] = WatchedFile(path, _state(path))
    ctypes.CDLL(None).signal(signal.SIGBUS, _on_bus_error)
    return _watched[path]


def _state(path: Path) -> tuple[int, ...]:
    """What tells a file from another one, or from itself after a change; nothing of one that is not there."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_mtime_ns)


@ctypes.CFUNCTYPE(None, ctypes.c_int)
def _on_bus_error(number: Any) -> None:
    """Ends the process by the error of a file that has changed, else by the signal, when the read is tried again."""
    try:
        for file in _watched.values():
            file.check()
    except DataError as error:
        os.write(2, f"gpbench: {error}\n".encode())
        os._exit(error.exit_code)
    ctypes.CDLL(None).signal(number, signal.SIG_DFL)
