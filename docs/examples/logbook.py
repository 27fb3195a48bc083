"""The reader of docs/how-to/own_data.md: a logbook with a line of `name value` pairs for each row."""

from collections.abc import Mapping, Sequence

import numpy as np

from gpbench.data import Raw
from gpbench.errors import DataError


def logbook(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads lines such as `flow=1.5; power=3.1`.

    Args:
        blobs: Contents of the files.
        options: Options of the source and of the reader: `target`, the name of the target, and `separator`.

    Raises:
        DataError: A line lacks a name, or has no number.
    """
    lines = blobs[0].decode().splitlines()
    try:
        rows = [dict(pair.split("=") for pair in line.split(options.get("separator", ","))) for line in lines]
        rows = [{name.strip(): float(value) for name, value in row.items()} for row in rows]
        names = [name for name in rows[0] if name != options["target"]]
        inputs = np.array([[row[name] for name in names] for row in rows])
        targets = np.array([row[options["target"]] for row in rows])
    except (ValueError, KeyError, IndexError) as error:
        raise DataError(f"not a logbook: {error}") from None
    return Raw(inputs, targets, tuple(names))
