"""`gpbench collect`: merges the records of several results folders into one Parquet file."""

import contextlib
import re
from collections.abc import Sequence
from math import isclose
from pathlib import Path

from gpbench import paths
from gpbench.analysis.cells import cell_key
from gpbench.claims import quantities
from gpbench.cli.output import Answer
from gpbench.errors import ClaimedError, ConfigError, listed, require
from gpbench.records import arrays, collection, locks, packages
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.records.unions import union

_Stored = tuple[Record, Store]
_SECTIONS = re.compile(r"^(?:run|data):\n(?: .*\n)*", re.MULTILINE)
_FOLDER = re.compile(r"^(  (?:results|mirror|store): ).*\n(?:   .*\n)*", re.MULTILINE)
"""A folder in a section of a config.yaml, a long one in several lines."""

_TOLERANCE = 1e-6  # relative difference of the metrics of one run between machines that counts as rounding


def collect(*results: Path, out: Path = Path("records.parquet"), newest: bool = False, remove: bool = False) -> Answer:
    """Merge the records of results folders or Parquet files into one Parquet file, with a row for each run.  Of several
    records of a run the oldest is used.  Every --results also takes such a file, which has traces of at most 48 points,
    what pictures need of the first splits, what claims read of the others, and no predictions.

    Args:
        results (DIR): default: the results folder
        out (FILE): default: records.parquet
        newest: of several records of a run the newest, as of runs made again
        remove: delete the folders of the runs that FILE has, with their whole traces, predictions and trained states

    examples:
      gpbench collect results here/results there/results --out all.parquet
    """
    require(out.suffix == collection.SUFFIX, f"--out {out}: the name must end in {collection.SUFFIX}", ConfigError)
    folders = results or (paths.results_dir(),)
    stores = [collection.open_existing(folder) for folder in folders]
    contents = [[(record, store) for record in store.all(whole=True)] for store in stores]
    pairs = [pair for others in contents for pair in others]
    require(pairs, "no runs there yet; train with `gpbench run`", ConfigError)
    merged, differing = _merge(pairs, newest=newest)
    lost = len(_ids_in(out) - {record.id for record, _ in merged})
    fault = f"{out} has {lost} other runs, perhaps of no folder any more: name it too, or delete it"
    require(not lost, fault, ConfigError)
    rows = [(record, _portable(store.config_text(record.id))) for record, store in merged]
    lists = packages.texts((record for record, _ in merged), union([*stores]).packages)
    collection.write(out, rows, _traces(merged), lists)
    sources = [{"results": str(folder), "records": len(own)} for folder, own in zip(folders, contents)]
    lines = [f"{source['records']:>8,}  {source['results']}" for source in sources]
    lines.append(f"{len(merged):>8,}  different runs in {out}")
    if differing:
        fault = "of these have several records whose metrics differ by more than rounding"
        lines.append(f"{len(differing)} {fault}: {listed(differing)}")
    removed = _remove(pairs, out) if remove else 0
    if remove:
        own = {store.folder_of(record.id) for record, store in pairs if store.is_folder}
        lines.append(f"{removed:>8,}  of their {len(own)} folders deleted")
    data = {"out": str(out), "records": len(merged), "from": sources, "differing": differing, "removed": removed}
    return Answer(data, "\n".join(lines))


def _ids_in(out: Path) -> set[str]:
    """The ids of the runs in a file that is to be written over.  Raises ConfigError: it has none that can be read."""
    ids: set[str] = set()
    with contextlib.suppress(ConfigError):
        ids = {id for id, _ in collection.read_times(out)}
    fault = f"{out} is there, and has no runs that can be read: name another file, or delete it"
    require(ids or not out.is_file(), fault, ConfigError)
    return ids


def _remove(pairs: Sequence[_Stored], out: Path) -> int:
    """Deletes the folders whose records the file has as it is read back; their number."""
    by_id = {record.id: record for record, _ in collection.read(out)[0]}
    removed = 0
    for record, store in (pair for pair in pairs if pair[1].is_folder):
        with contextlib.suppress(ClaimedError), locks.claim(store.runs.parent, [record.id]):
            own = store.get(record.id, whole=False)
            if own and own == by_id.get(record.id):  # it is not another record by now, nor that of another folder
                store.delete(record.id)
                removed += 1
    return removed


def _portable(config: str) -> str:
    """The text of a config.yaml without the folders of the machine where it ran: a collection is for others too."""
    default = lambda match: match[1] + ("results\n" if "results" in match[1] else "null\n")
    return _SECTIONS.sub(lambda section: _FOLDER.sub(default, section[0]), config)


def _merge(pairs: Sequence[_Stored], *, newest: bool) -> tuple[list[_Stored], list[str]]:
    """The oldest or newest record of each id with its store, in order of creation; and the ids whose metrics differ."""
    by_age = sorted(pairs, key=lambda pair: pair[0].age)
    records: dict[str, _Stored] = {}
    differing: dict[str, None] = {}
    for record, store in reversed(by_age) if newest else by_age:
        first, _ = records.setdefault(record.id, (record, store))
        if not _same(first, record):
            differing[record.id] = None
    return sorted(records.values(), key=lambda pair: pair[0].age), list(differing)


def _traces(pairs: Sequence[_Stored]) -> dict[str, bytes]:
    """The traces of these records by id: thinned, and of other splits than the first of a cell what claims read."""
    first: dict[tuple, tuple[int, int]] = {}
    for record, _ in pairs:
        key, member = cell_key(record), (record.split, record.seed)
        first[key] = min(first.get(key, member), member)
    traces = {}
    for record, store in pairs:
        is_first = first[cell_key(record)] == (record.split, record.seed)
        whole = store.trace(record.id)
        if packed := arrays.pack(arrays.thin(whole, whole=is_first) | ({} if is_first else quantities.extracts(whole))):
            traces[record.id] = packed
    return traces


def _same(a: Record, b: Record) -> bool:
    """Whether two records of a run have the same metrics, up to rounding."""
    if (a.status, a.metrics.keys()) != (b.status, b.metrics.keys()):
        return False
    pairs = [(value, b.metrics[name]) for name, value in a.metrics.items()]
    return all(x == y or (x is not None and y is not None and isclose(x, y, rel_tol=_TOLERANCE)) for x, y in pairs)
