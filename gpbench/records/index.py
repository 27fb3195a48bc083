"""The index of a results folder of many runs: what each record.json says, with the stamp of that file. It spares
opening and checking every record. A record whose file has another stamp is read again, and an index that cannot be read
is made again. Who can write the index can change what lists and tables say, as by the records themselves. A line is a
run: its id, its time, the stamp, the digest of a template and the numbers in base64. A template, which many runs share,
is a line of JSON: a record with zeros for its numbers.
"""

import contextlib
import functools
import hashlib
import json
import math
import os
import re
import struct
from binascii import a2b_base64, b2a_base64
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import call
from pathlib import Path
from typing import Any

from gpbench import limits, outputs
from gpbench.errors import require
from gpbench.records import folder
from gpbench.records.record import Record, slots

NAME = "index"  # of the file, beside the runs
FEWEST = 500  # runs of a folder that has an index, and new ones for which it is written again
_NEW = 16  # in a large folder it is written again when one of so many runs is new
_RACY_NS = 2 * 10**9  # a file that is as young may change again within a tick of the file system's clock
_END = 64  # bytes of the SHA-256 at the end of the file
_KEY = 16  # bytes of a template's digest in a line
_WORD = re.compile(r"[!-z]+")  # an id or a time that a line can have

_SHARED = {"schema", "step_memory_mb", "step_operations", "row_operations"}  # numbers that are part of a template
_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False)

_Read = tuple[str, Record | None, str]  # an id, its record, or None and what is wrong with it


class Index:
    """The records of these runs (`ids`) in `runs`, from the index as far as it holds."""

    def __init__(self, runs: Path, ids: Sequence[str]):
        self._runs, self._file = str(runs), runs.parent / NAME
        self._stamps: dict[bytes, bytes] = {}
        self._templates: dict[bytes, bytes] = {}
        self._lines: dict[bytes, bytes] = {}
        size = 0
        for id in filter(_WORD.fullmatch, ids):
            try:
                facts = os.stat(f"{self._runs}/{id}/{folder.RECORD}")
            except OSError:
                continue
            self._stamps[id.encode()] = stamp(facts)
            size += facts.st_size
        with contextlib.suppress(OSError, ValueError):
            self._read(2 * size)  # a larger one, as after many deletions, is made again
        self._others = [id for id in ids if os.fsencode(id) not in self._lines]

    def ages(self, say: Callable[[str, str], None]) -> Iterator[tuple[str, str]]:
        """The age of each readable record, as `Record.age`; `say` gets the id of another one, and what is wrong."""
        for id, record, fault in self._missing():
            if record:
                yield record.age
            else:
                say(id, fault)
        for line in self._lines.values():
            id, created, _ = line.decode().split(" ", 2)
            yield created, id

    def records(self) -> Iterator[_Read]:
        """Every run."""
        yield from self._missing()
        self._stamps.clear()  # they need the room of ten thousand records
        reader = functools.cache(lambda digest: _reader(self._templates[digest]))
        while self._lines:  # each makes room for its record
            name, line = self._lines.popitem()
            _, created, _, digest, numbers = line.split(b" ")
            id = name.decode()
            try:
                read: _Read = id, reader(digest)(id, created.decode(), numbers), ""
            except (ValueError, LookupError, TypeError, RecursionError, struct.error):
                read = id, *folder.read(self._runs, id)
            yield read

    def _read(self, most: int) -> None:
        """Reads the lines whose stamp is that of the record.  Raises ValueError for a damaged index."""
        whole = limits.read(self._file, most)
        seal = _seal()
        seal.update(memoryview(whole)[:-_END])
        require(whole[-_END:] == seal.hexdigest().encode(), "damaged, or of another gpbench", ValueError)
        for line in whole[:-_END].split(b"\n"):
            if line.startswith(b"{"):
                self._templates[_digest(line)[:_KEY]] = line
            elif len(words := line.split(b" ")) == 5 and self._stamps.get(words[0]) == words[2]:
                self._lines[words[0]] = line

    def _missing(self) -> Iterator[_Read]:
        """Reads the records that the index lacks.  Many of them it takes, and is written; all others are returned."""
        if len(self._others) < max(FEWEST, len(self._lines) // _NEW):
            yield from ((id, *folder.read(self._runs, id)) for id in self._others)
            return
        try:
            with outputs.whole_file(self._file) as file:
                oldest = os.fstat(file.fileno()).st_mtime_ns - _RACY_NS  # by the clock of the file system
                yield from self._take()
                lines = [line for line in self._lines.values() if _changed(line) < oldest]
                keys = {line.split(b" ")[3] for line in lines}
                seal = _seal()
                for line in (*(line for key, line in self._templates.items() if key in keys), *lines):
                    seal.update(line + b"\n")
                    file.write(line + b"\n")
                file.write(seal.hexdigest().encode())
        except OSError:  # a folder that cannot be written has no index
            yield from self._take()

    def _take(self) -> Iterator[_Read]:
        """Takes the records that the index lacks; those that it cannot have are returned."""
        while self._others:
            id = self._others.pop()
            record, fault = folder.read(self._runs, id)
            if record and os.fsencode(id) in self._stamps and _WORD.fullmatch(created := record.created or ""):
                template, numbers = _split(record)
                self._templates[digest := _digest(template)[:_KEY]] = template
                name = id.encode()
                self._lines[name] = b" ".join([name, created.encode(), self._stamps[name], digest, numbers])
            else:
                yield id, record, fault


def stamp(facts: os.stat_result) -> bytes:
    """What tells a file from others, and from what it was; programs cannot set the time at the end."""
    return b"%x.%x.%x.%x" % (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def _changed(line: bytes) -> int:
    """The later time in the stamp of a line."""
    return max(int(time, 16) for time in line.split(b" ", 3)[2].split(b".")[2:])


def _seal() -> Any:
    """The beginning of the SHA-256 of an index: one of records with other fields is made again."""
    return hashlib.sha256(" ".join(slots()).encode())


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _parts(value: Mapping[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """The fields of a record whose values are no part of its template: whole numbers, others, and tables of these."""
    whole, real, tables = list[str](), list[str](), list[str]()
    for name, item in value.items():
        kind = type(item)
        if name in _SHARED or name not in slots():
            continue
        if kind is int or kind is float:
            (whole if kind is int else real).append(name)
        elif kind is dict and {float} <= {*map(type, item.values())} <= {float, type(None)}:
            tables.append(name)
    return whole, real, tables


def _split(record: Record) -> tuple[bytes, bytes]:
    """The template and the numbers of a record."""
    value = record.to_json() | {"id": "", "created": ""}
    whole, real, tables = _parts(value)
    numbers = [*map(value.__getitem__, (*whole, *real)), *(x for name in tables for x in value[name].values())]
    form = f"={len(whole)}q{len(numbers) - len(whole)}d"
    packed = struct.pack(form, *(math.nan if x is None else x for x in numbers))
    value |= dict.fromkeys(whole, 0) | dict.fromkeys(real, 0.0)
    value |= {name: dict.fromkeys(value[name], 0.0) for name in tables}
    return _JSON.encode(value).encode(), b2a_base64(packed, newline=False)


def _reader(template: bytes) -> Callable[[str, str, bytes], Record]:
    """What makes records of a template, from an id, a time and numbers.  Raises ValueError."""
    model = Record.from_json(folder.plain(template.decode()))
    whole, real, names = _parts(model.to_json())
    constant = ["_names", "_others", *(slots().keys() - {"id", "created", *whole, *real, *names})]
    constants = [getattr(model, name) for name in constant]
    setters = [getattr(Record, name).__set__ for name in (*constant, "id", "created", *whole, *real)]
    tables, n = [], len(whole) + len(real)
    for name in names:
        keys = tuple(getattr(model, name))
        tables.append((getattr(Record, name).__set__, keys, n, n := n + len(keys)))
    form = struct.Struct(f"={len(whole)}q{n - len(whole)}d")

    def read(id: str, created: str, content: bytes) -> Record:
        numbers: Sequence[Any] = form.unpack(a2b_base64(content))
        if not math.isfinite(sum(numbers)):
            require(math.inf not in map(abs, numbers), "an infinite number", ValueError)
            numbers = [None if x != x else x for x in numbers]
        record = Record.__new__(Record)
        values = chain(constants, (id, created), numbers)
        deque(map(call, setters, repeat(record), values), maxlen=0)  # a loop without bytecode: five million calls
        for store, keys, start, end in tables:
            store(record, dict(zip(keys, numbers[start:end])))
        return record

    return read
