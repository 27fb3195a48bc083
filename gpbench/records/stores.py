"""Several results folders, which may have the same runs."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from gpbench.errors import ConfigError
from gpbench.records.collected import SUFFIX, open_store
from gpbench.records.record import Record
from gpbench.records.store import Store


def open_existing(results: Path | str) -> Store:
    """The records in a results folder, or in a Parquet file of them.

    A folder without runs stands for the `records.parquet` in it.  Raises ConfigError where there is no folder.
    """
    folder = Path(results)
    if not str(results).endswith(SUFFIX) and not folder.is_dir():
        problem = "is a file, and no results folder" if folder.exists() else "no such folder"
        raise ConfigError(f"{results}: {problem}")
    collection = folder / f"records{SUFFIX}"
    return open_store(collection if collection.is_file() and not (folder / "runs").is_dir() else folder)


def recorded(stores: Sequence[Store]) -> list[Record]:
    """Every record of these stores.  Raises ConfigError where there is none."""
    records = [record for store in stores for record in store.all()]
    if not records:
        folders = ", ".join(str(store.runs) for store in stores)
        raise ConfigError(f"no runs in {folders} yet; train with `gpbench run`")
    return records


def latest(records: Iterable[Record]) -> list[Record]:
    """The latest record of each id, oldest first: several folders may have the same run."""
    by_id = {record.id: record for record in sorted(records, key=lambda record: record.age)}
    return sorted(by_id.values(), key=lambda record: record.age)
