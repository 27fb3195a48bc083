"""A record for tests, with the fields that all records have, and a disk that is full."""

import errno
import io

from gpbench.records.record import Record


def sample(id: str = "a" * 16, **fields) -> Record:
    """A finished run with these fields."""
    needed = {"id": id, "status": "done", "dataset": "pima", "method": "sep", "setting": "", "protocol": "clean"}
    return Record.create(**needed | {"split": 0, "seed": 0, "metrics": {}, "seconds": {}} | fields)


class FullDisk(io.FileIO):
    """A file on a disk that has no room after ten bytes, in the place of `gpbench.outputs.open`."""

    def write(self, content):
        super().write(content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")
