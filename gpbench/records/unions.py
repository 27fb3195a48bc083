"""Several results folders read as one, and the records that ship with gpbench (`paths.shipped_files`): read where
nothing of one's own is recorded, which is said on stderr, and under the name `shipped` beside one's own."""

import contextlib
import functools
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from gpbench import paths
from gpbench.errors import AbsentError, ConfigError, SoleMethodError, require
from gpbench.log import log
from gpbench.records import packages
from gpbench.records.collection import Collection, open_existing, open_store
from gpbench.records.record import Record
from gpbench.records.store import Store, latest

SHIPPED = "shipped"  # the name, in the place of a results folder, of the records that ship with gpbench

Results = str | PathLike[str] | Store | Sequence[str | PathLike[str] | Store] | None
"""A results folder, a collected Parquet file, a store or "shipped", or several; None is the default folder."""

_Answer = TypeVar("_Answer")


class _StoreUnion(Store):
    """Several stores as one to read from: of a run in several the latest record counts."""

    is_folder = False
    _refusal = "are several folders to read from; name one to write into or to delete from"

    def __init__(self, stores: Sequence[Store]) -> None:
        super().__init__("")
        self.stores = tuple(stores)
        shipped = set(paths.shipped_files())  # several files, which are named together
        names = ["the runs that ship with gpbench" if store.runs in shipped else str(store.runs) for store in stores]
        self.runs = Path(", ".join(dict.fromkeys(names)))

    def get(self, id: str, *, whole: bool = True) -> Record | None:
        """The latest record of a run; None where no store has a readable one."""
        records = [store.get(id, whole=whole) for store in self.stores if store.contains(id)]
        return max((record for record in records if record), key=lambda record: record.age, default=None)

    def all(self, *, whole: bool = False) -> list[Record]:
        """Every readable record, each run once, oldest first."""
        return latest(record for store in self.stores for record in store.all(whole=whole))

    def contains(self, id: str) -> bool:
        """True if a store has a run of this id."""
        return any(store.contains(id) for store in self.stores)

    def folder_of(self, id: str) -> Path:
        """The folder of a run."""
        return self._holder(id).folder_of(id)

    def packages(self, checksum: str) -> str:
        """The list of installed packages that records name, from the first store that has it."""
        errors: list[ConfigError] = []
        for store in self.stores:
            try:
                return store.packages(checksum)
            except ConfigError as error:
                errors.append(error)
        damaged = [error for error in errors if not isinstance(error, AbsentError)]
        raise (*damaged, packages.absent(checksum, self.runs))[0]

    def _holder(self, id: str) -> Store:
        """The store with the latest record of a run, of equal ones a folder, which has more files; else the last."""

        def order(store: Store) -> tuple[tuple[str, str], bool]:
            record = store.get(id, whole=False)
            return record.age if record else ("", ""), not isinstance(store, Collection)

        holders = [store for store in self.stores if store.contains(id)] or [self.stores[-1]]
        return max(reversed(holders), key=order) if len(holders) > 1 else holders[0]

    def _ids(self) -> Iterator[str]:
        yield from dict.fromkeys(id for store in self.stores for id in store.ids())

    def _read(self, id: str, *, whole: bool = False) -> tuple[Record | None, str]:
        return self._holder(id)._read(id, whole=whole)

    def _beside(self, id: str, *args: Any) -> Any:
        return self._holder(id)._beside(id, *args)


def open_stores(results: Results = None) -> list[Store]:
    """The stores of these results folders; by default that of the default folder, or the shipped without runs there."""
    if results is None:
        own = _default()
        if own.ids() or not (stores := _shipped()):
            return [own]
        log.info(f"nothing recorded here: these are {_count(stores)}")
        return stores
    several = [results] if isinstance(results, str | PathLike | Store) else list(results)
    require(several, "the list of results folders is empty", ConfigError)
    is_there = SHIPPED not in map(str, several) or paths.shipped_files()
    require(is_there, f"no records ship with this gpbench: {SHIPPED} names none", ConfigError)
    opened = lambda item: [item if isinstance(item, Store) else open_existing(Path(item))]
    return [s for item in several for s in (_shipped(len(several) > 1) if str(item) == SHIPPED else opened(item))]


def open_one(results: Results = None) -> Store:
    """The stores of `open_stores` as one."""
    return union(open_stores(results))


def package_lists(records: Iterable[Record], results: Results = None) -> dict[str, str]:
    """Lists of the installed packages of these records by checksum, from wherever `first_answer` found them."""

    @functools.cache
    def store() -> Store:
        return union([_default(), *_shipped()] if results is None else open_stores(results))

    return packages.texts(records, lambda checksum: store().packages(checksum))


def union(stores: Sequence[Store]) -> Store:
    """These stores as one."""
    return stores[0] if len(stores) == 1 else _StoreUnion(stores)


def first_answer(
    results: Results, answer: Callable[[list[Store]], _Answer], is_nothing: Callable[[_Answer], bool] = lambda _: False
) -> _Answer:
    """The answer that recorded runs give: where no folder is named, and none of one's own runs is asked for, that of
    the runs that ship with gpbench, which is said.  They are never mixed unless both are named."""
    stores = open_stores(results)
    others = _shipped() if results is None and not isinstance(stores[0], Collection) else []
    reason = "nothing of the kind is recorded here"
    try:
        own = answer(stores)
    except AbsentError as error:
        if not others:
            raise
        try:
            theirs = answer(others)
        except AbsentError:
            raise _of_both(error, answer, [*stores, *others]) from None
        if isinstance(error, SoleMethodError):
            reason = str(error)
    else:
        if not others or not is_nothing(own) or is_nothing(theirs := answer(others)):
            return own
    log.info(f"read from {_count(others)}: {reason}")
    return theirs


def _of_both(error: AbsentError, answer: Callable[[list[Store]], Any], stores: list[Store]) -> ConfigError:
    """The error of own and shipped runs together; where they answer, how to read both."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            answer(stores)
    except ConfigError as other:
        return other
    hint = AbsentError(f"{error}; results=[{str(paths.results_dir())!r}, {SHIPPED!r}] reads those that ship too")
    hint.printed = f"{error}; --with-shipped reads the runs that ship with gpbench too, which have it"
    return hint


def _default() -> Store:
    """The store of the default folder, by the rule of a folder that is named; it need not exist yet."""
    folder = paths.results_dir()
    return open_existing(folder) if folder.is_dir() else open_store(folder)


def _shipped(marked: bool = False) -> list[Store]:
    """The stores of the shipped records, in several files, in which a run may be twice."""
    return [Collection(path, shipped=marked) for path in paths.shipped_files()]


def _count(stores: Sequence[Store]) -> str:
    return f"the {len({id for store in stores for id in store.ids()}):,} runs that ship with gpbench"
