"""One run's folder: record.json, config.yaml, trace.npz and perhaps predictions, and when a record is whole."""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench.records import predictions as prediction_file
from gpbench.records import seal
from gpbench.records.record import Record, clean

if TYPE_CHECKING:
    import numpy as np

RECORD, CONFIG, TRACE, STATE = "record.json", "config.yaml", "trace.npz", "state.npz"
FILES = (CONFIG, TRACE, prediction_file.FILE, STATE)
"""Beside the record."""


def read(runs: str, id: str) -> tuple[Record | None, str]:
    """The record in `runs/id`, and ""; or None, and what is wrong with it."""
    try:
        value, _ = _unsealed(runs, id)
        return Record.from_json(value, id), ""
    except FileNotFoundError:
        return None, "it has no record.json"
    except OSError as error:
        return None, error.strerror or str(error)
    except ValueError as error:
        return None, str(error)


def content(runs: str, id: str, name: str) -> bytes | None:
    """Another file of the run; None where it has none of this name.

    Raises ValueError that says what is wrong where it is not what was written with the record, or cannot be read.
    """
    try:
        with open(f"{runs}/{id}/{name}", "rb") as file:
            found = file.read()
        _, checksums = _unsealed(runs, id)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"its {name} cannot be read: {error.strerror or error}") from None
    if checksums is not None and checksums.get(name) != seal.digest(found):
        raise ValueError(f"its {name} is not what was written (the checksum differs)")
    return found


def damage(runs: str, id: str) -> str:
    """What is wrong with the files beside the record; "" where nothing is."""
    try:
        for name in FILES:
            content(runs, id, name)
    except ValueError as error:
        return str(error)
    return ""


def _unsealed(runs: str, id: str) -> tuple[Any, dict[str, str] | None]:
    with open(f"{runs}/{id}/{RECORD}", "rb") as file:
        return seal.unseal(file.read())


def write(
    folder: Path,
    record: Record,
    config: Mapping,
    trace: "Mapping[str, np.ndarray]",
    predictions: prediction_file.Predictions | None = None,
    state: "Mapping[str, np.ndarray] | None" = None,
) -> None:
    """Makes the folder with its files, on the disk and not only in its cache.  Raises OSError."""
    import numpy as np
    import yaml

    folder.mkdir()
    (folder / CONFIG).write_text(yaml.safe_dump(clean(config, math.inf), sort_keys=False))
    np.savez_compressed(folder / TRACE, allow_pickle=False, **{k: np.asarray(v) for k, v in trace.items()})
    if predictions:
        prediction_file.write(folder, predictions)
    if state:
        np.savez_compressed(folder / STATE, allow_pickle=False, **{k: np.asarray(v) for k, v in state.items()})
    others = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    (folder / RECORD).write_bytes(seal.seal(record.to_json(), others))
    for path in (*folder.iterdir(), folder):
        fsync(path)


def fsync(path: Path) -> None:
    """Waits until a file's content, or a folder's list of names, is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
