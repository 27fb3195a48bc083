"""Errors that damaged archives raise: apart from `gpbench.errors`, so that verbs that read none start quickly."""

import struct
import zipfile
import zlib

DAMAGED = (
    OSError,
    KeyError,
    ValueError,
    TypeError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
    MemoryError,
)
"""Errors of `numpy.load` and of the arrays of its archives: any of these, depending on which byte is wrong."""
