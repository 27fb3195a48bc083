"""A record for tests, with the fields that all records have."""

from gpbench.records.record import Record


def sample(id: str = "a" * 16, **fields) -> Record:
    """A finished run with these fields."""
    needed = {"id": id, "status": "done", "dataset": "pima", "method": "sep", "setting": "", "protocol": "clean"}
    return Record.create(**needed | {"split": 0, "seed": 0, "metrics": {}, "seconds": {}} | fields)
