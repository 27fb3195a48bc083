"""One run's folder: record.json, config.yaml, trace.npz and perhaps predictions, and when a record is whole."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench.records import predictions as prediction_file
from gpbench.records.identity import SCHEMA

if TYPE_CHECKING:
    import numpy as np

STATE = "state.npz"

_NUMBER = (int, float)
_NEEDED: dict[str, type | tuple[type, ...]] = {
    "id": str, "status": str, "dataset": str, "method": str, "setting": str, "protocol": str,
    "split": int, "seed": int, "metrics": dict, "seconds": dict,
}  # fmt: skip
_OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "output": (str, int), "preset": str, "precision": str, "device": str, "created": str, "commit": str, "cell": str,
    "data_checksum": str, "versions": dict, "objective": _NUMBER, "held_out": bool,
    "schema": int, "imported": bool, "source": str, "source_checksum": str,
}  # fmt: skip


def read(runs: str, id: str) -> tuple[dict | None, str]:
    """The record in `runs/id`, and ""; or None, and what is wrong with it."""
    try:
        with open(f"{runs}/{id}/record.json", "rb") as file:
            record = json.loads(file.read(), parse_constant=lambda _: None)  # NaN, as others write it
    except FileNotFoundError:
        return None, "it has no record.json"
    except OSError as error:
        return None, error.strerror or str(error)
    except ValueError:
        return None, "its record.json is not valid JSON"
    fault = _fault(record, id)
    return (None, fault) if fault else (record, "")


def newer(record: Mapping) -> str:
    """What is wrong with a record of a newer gpbench, "" for any other."""
    schema = record.get("schema")
    return f"it has schema {schema}, and this gpbench reads up to {SCHEMA}: upgrade" if (schema or 1) > SCHEMA else ""


def _fault(record: Any, id: str) -> str:
    if not isinstance(record, dict):
        return "its record.json is not a mapping"
    wrong = [key for key, kind in _NEEDED.items() if not isinstance(record.get(key), kind)]
    wrong += [k for k, kind in _OPTIONAL.items() if record.get(k) is not None and not isinstance(record[k], kind)]
    if wrong:
        return f"{', '.join(wrong)} missing or of the wrong type"
    if fault := newer(record):
        return fault
    if record["id"] != id:
        return f"it says that its id is {record['id']}"
    if record["status"] not in ("done", "diverged"):
        return f"status {record['status']!r} is neither done nor diverged"
    for name, value in (*record["metrics"].items(), *record["seconds"].items()):
        if value is not None and not isinstance(value, _NUMBER):
            return f"{name} is not a number"
    return ""


def write(
    folder: Path,
    record: Mapping,
    config: Mapping,
    trace: "Mapping[str, np.ndarray]",
    predictions: prediction_file.Predictions | None = None,
    state: "Mapping[str, np.ndarray] | None" = None,
) -> None:
    """Makes the folder with its files, on the disk and not only in its cache.  Raises OSError."""
    import numpy as np
    import yaml

    folder.mkdir()
    (folder / "record.json").write_text(json.dumps(clean(record), indent=1, allow_nan=False) + "\n")
    (folder / "config.yaml").write_text(yaml.safe_dump(clean(config), sort_keys=False))
    np.savez_compressed(folder / "trace.npz", allow_pickle=False, **{k: np.asarray(v) for k, v in trace.items()})
    if predictions:
        prediction_file.write(folder, predictions)
    if state:
        np.savez_compressed(folder / STATE, allow_pickle=False, **{k: np.asarray(v) for k, v in state.items()})
    for path in (*folder.iterdir(), folder):
        fsync(path)


def clean(value: Any) -> Any:
    """JSON-clean: NaN and infinities to None, NumPy scalars and arrays to Python's, tuples to lists."""
    if isinstance(value, Mapping):
        return {str(key): clean(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def fsync(path: Path) -> None:
    """Waits until a file's content, or a folder's list of names, is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
