"""The results folder: one folder per finished run, `runs/<id>/` with record.json, config.yaml, trace.npz and perhaps
predictions.parquet and state.npz; and the lists of installed packages, `packages/<checksum>.txt`.  A run's folder is
written beside and renamed into place, so a folder with an id for a name is whole or damaged from outside, never
half-written; many processes may write at once, and folders copied in from elsewhere count."""

import contextlib
import errno
import gc
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gpbench.errors import AbsentError, ConfigError, StorageError, failure, nearest, require
from gpbench.log import log
from gpbench.records import arrays, index, packages, processes
from gpbench.records import folder as files
from gpbench.records.record import Record

if TYPE_CHECKING:
    import numpy as np

_Content = TypeVar("_Content")


class Store:
    """The records in one results folder.  Nothing is created before the first write.  Other kinds of stores have
    `_ids`, `_read` and `_content` of their own, by which the methods read."""

    is_folder = True  # with a file for each record, of which there may be an index
    _refusal = ""  # reason for which nothing can be written or deleted here
    _mend = "`gpbench run` trains it again"

    def __init__(self, results: Path | str) -> None:
        self.runs = Path(results) / "runs"
        self._reported: set[str] = set()

    def get(self, id: str, *, whole: bool = True) -> Record | None:
        """The record of a finished run; None where there is none, or it is damaged, which is said on stderr."""
        record, fault = self._read(id, whole=whole)
        if record is None and (processes.restore(self.runs, id) or (self.runs / id).exists()):
            record, fault = self._read(id, whole=whole)  # another process may have put it there meanwhile
            if record is None:
                self._say(id, f"{self.runs / id} counts as missing: {fault}")
        return record

    def all(self, *, whole: bool = False) -> list[Record]:
        """Every readable record, oldest first.  A damaged one is named once on stderr and left out."""
        records = []
        with without_gc():
            for id, record, fault in self._every(whole):
                if record is not None:
                    records.append(record)
                else:
                    self._skip(id, fault)
        return sorted(records, key=lambda record: record.age)

    def ids(self) -> Sequence[str]:
        """The ids of all runs, readable or not."""
        return list(self._ids())

    def contains(self, id: str) -> bool:
        """True if there is a run of this id, readable or not."""
        return (self.runs / id).is_dir()

    def folder_of(self, id: str) -> Path:
        """The folder of a run."""
        return self.runs / id

    def find(self, prefix: str) -> Record:
        """The one record whose id starts with `prefix`.  Raises ConfigError if none or several do, or it is damaged."""
        record, fault = self._read(id := self.id_of(prefix))
        if record is None:
            raise ConfigError(f"the record {self.runs / id} cannot be read: {fault}; `gpbench rm {id}`, and run again")
        return record

    def id_of(self, prefix: str) -> str:
        """The one id that starts with `prefix`.  Raises ConfigError if none or several do."""
        ids = list(self._ids())
        matches = [id for id in ids if id.startswith(prefix)] if prefix else []
        several = f"{len(matches)} runs start with {prefix!r}: {', '.join(matches[:5])}; give more digits"
        require(len(matches) < 2, several, ConfigError)
        hint = nearest(prefix, ids) if len(ids) in range(1, 10) else "`gpbench ls runs` lists them"
        require(matches, f"no run {prefix!r} in {self.runs}; {hint}", AbsentError)
        return matches[0]

    def delete(self, id: str) -> None:
        """Deletes a run: it is moved aside first, so that its folder is never half-empty.  Raises StorageError."""
        require(not self._refusal, f"{self.runs} {self._refusal}", ConfigError)
        fault = f"{self.runs / id} is a symbolic link, not a folder: delete the link yourself"
        require(not (self.runs / id).is_symlink(), fault, StorageError)
        aside = processes.aside(self.runs, id)
        try:
            (self.runs / id).rename(aside)
            shutil.rmtree(aside)
        except OSError as error:
            raise storage_error(self.runs, error) from error

    def last(self) -> Record:
        """The record made last.  Raises ConfigError if there is none."""
        ids = self.ids() if self.is_folder else []
        ages = index.Index(self.runs, ids).ages(self._skip) if len(ids) >= index.FEWEST else []
        _, id = max(ages, default=("", ""))
        record = self.get(id, whole=False) if id else None
        records = [record] if record else self.all()[-1:]
        fault = f"no runs in {self.runs} {'can be read' if ids else 'yet'}; make one with `gpbench run`"
        require(records, fault, AbsentError)
        return records[0]

    def config(self, id: str) -> dict[str, Any]:
        """The resolved configuration of a run; empty if its folder has none that can be read, which is said."""
        try:
            return files.parse_config(self.config_text(id))
        except ValueError as error:
            self._say(id, f"{self.runs / id}: its {files.CONFIG} is left out: {error}")
            return {}

    def config_text(self, id: str) -> str:
        """The configuration as it lies there, in YAML; empty where there is none."""
        return self._beside(id, files.CONFIG, files.decode_config, "")

    def trace(self, id: str) -> "dict[str, np.ndarray]":
        """The arrays of trace.npz: step, seconds (training so far), objective, one per metric; empty if none."""
        return self._beside(id, files.TRACE, arrays.unpack_trace, {})

    def predictions(self, id: str) -> "dict[str, np.ndarray]":
        """The predictions of the test rows (`gpbench.records.arrays`); empty if none were kept."""
        return self._beside(id, arrays.PREDICTIONS, arrays.unpack_predictions, {})

    def state(self, id: str, expected: arrays.Headers | None = None) -> "dict[str, np.ndarray] | None":
        """The arrays of the trained state; empty if it was not saved or is damaged, None for others than expected."""
        nothing: dict[str, np.ndarray] | None = {}
        return self._beside(id, files.STATE, lambda content: arrays.unpack_state(content, expected), nothing)

    def packages(self, checksum: str) -> str:
        """The list of installed packages that records name.  Raises AbsentError, or ConfigError for a damaged one."""
        return packages.read(self.runs.parent, checksum)

    def write(
        self,
        record: Record,
        config: Mapping[str, Any],
        trace: "Mapping[str, np.ndarray]",
        *,
        predictions: arrays.Predictions | None = None,
        state: "Mapping[str, np.ndarray] | None" = None,
        package_list: str = "",
        replace: bool = False,
    ) -> Path:
        """Puts a finished run in place; its folder.  Raises StorageError: the disk is full, or may not be written."""
        require(not self._refusal, f"{self.runs} {self._refusal}", ConfigError)
        folder = self.runs / record.id
        log.debug("recording %s", folder)
        beside = processes.aside(self.runs, record.id)
        old = beside.with_name(beside.name + processes.OLD)
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            processes.restore(self.runs)
            processes.delete_stale(self.runs)
            if package_list:
                with contextlib.suppress(OSError):  # a run is worth more than its list, which `show` says is missing
                    packages.write(self.runs.parent, package_list)
            files.write(beside, record, config, trace, predictions, state)
            if folder.exists() and (replace or self.get(record.id) is None):
                folder.rename(old)
            try:
                beside.rename(folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # a record is there: keep it
                    if old.exists() and not folder.exists():
                        old.rename(folder)
                    raise
            files.fsync(self.runs)
        except OSError as error:
            raise storage_error(self.runs, error) from error
        finally:
            for name in (beside, old):
                shutil.rmtree(name, ignore_errors=True)
        return folder

    def _every(self, whole: bool) -> Iterator[tuple[str, Record | None, str]]:
        """The id of each run, its record, or None and what is wrong with it."""
        ids = [*self._ids()]
        if whole or not self.is_folder:
            return ((id, *self._read(id, whole=whole)) for id in ids)
        return index.Index(self.runs, ids).records()

    def _ids(self) -> Iterator[str]:
        try:
            with os.scandir(self.runs) as entries:
                names = [entry.name for entry in entries if entry.is_dir()]
            yield from (name for name in names if not name.startswith("."))
            if any(name.endswith(processes.OLD) for name in names):
                yield from processes.restore(self.runs)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(self.runs, error) from error

    def _read(self, id: str, *, whole: bool = False) -> tuple[Record | None, str]:
        """The record, and ""; or None, and what is wrong with it, or where all is wanted with a file beside it."""
        record, fault = files.read(str(self.runs), id)
        try:
            for name in files.FILES if record and whole else ():
                files.content(str(self.runs), id, name)
        except ValueError as error:
            return None, str(error)
        return record, fault

    def _content(self, id: str, name: str) -> bytes | None:
        """Another file of the run; None where it has none of this name.  Raises ValueError: it is damaged."""
        return files.content(str(self.runs), id, name)

    def _beside(self, id: str, name: str, unpack: Callable[[bytes], _Content], nothing: _Content) -> _Content:
        """The content of another file of the run; `nothing` where it is absent, or damaged, which is said once."""
        try:
            content = self._content(id, name)
            return nothing if content is None else unpack(content)
        except ValueError as error:
            self._say(id, f"{self.runs / id}: {error}; {self._mend}")
            return nothing

    def _skip(self, id: str, fault: str) -> None:
        self._say(id, f"skipped the record {self.runs / id}: {fault}")

    def _say(self, id: str, line: str) -> None:
        """One line on stderr, and no other one about this run."""
        if id not in self._reported:
            self._reported.add(id)
            log.warning(line)


@contextlib.contextmanager
def without_gc() -> Iterator[None]:
    """A hundred thousand records would set the garbage collection off again and again: a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def recorded(stores: Sequence[Store]) -> list[Record]:
    """Every record of these stores.  Raises AbsentError where there is none."""
    records = [record for store in stores for record in store.all()]
    folders = ", ".join(str(store.runs) for store in stores)
    require(records, f"no runs in {folders} yet; train with `gpbench run`", AbsentError)
    return records


def latest(records: Iterable[Record]) -> list[Record]:
    """The latest record of each id, oldest first: several folders may have the same run."""
    by_id: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: record.age):
        by_id.pop(record.id, None)  # the latest record has its own place
        by_id[record.id] = record
    return [*by_id.values()]


def storage_error(folder: Path, error: OSError) -> StorageError:
    """The one line for a results folder that cannot be written, with how to mend it."""
    reason = failure(error, "name another one", "make it writable")
    return StorageError(f"cannot use the results folder {folder}: {reason}")
