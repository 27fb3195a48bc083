"""RO-Crates of tables: zip files of a table, its picture, its runs, what they cite, and a description of all these.

The format: https://w3id.org/ro/crate/1.1.  The description is a plain dict.  With the library `rocrate` it takes more
lines, and archives that `rocrate` writes are dated by the clock, where equal runs must give equal bytes."""

import hashlib
import io
import json
import math
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gpbench.analysis.formats import FORMATS
from gpbench.analysis.grouping import gather
from gpbench.analysis.printing import counted
from gpbench.analysis.sheets import Sheet
from gpbench.data import cards
from gpbench.errors import ConfigError
from gpbench.outputs import output
from gpbench.papers import references
from gpbench.records import collection, packages
from gpbench.records.record import Record
from gpbench.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEXTS = {"table.md": "md", "table.csv": "csv", "table.tex": "latex"}
_METADATA = "ro-crate-metadata.json"
_RECORDS = "records"  # beginning of the names of files with records

_CRATE = "https://w3id.org/ro/crate/1.1"
_CONTEXT = [f"{_CRATE}/context", {"sha256": "http://schema.org/sha256"}]
_KINDS = {
    ".md": ("The table with its notes", "text/markdown"),
    ".csv": ("The numbers of the table", "text/csv"),
    ".tex": ("The table in LaTeX, for the package booktabs, and of texts tabularray", "application/x-tex"),
    ".png": ("The picture of the table", "image/png"),
    ".bib": ("BibTeX entries of methods, data sets, protocols and gpbench", "application/x-bibtex"),
    ".txt": ("Packages that were installed for runs whose records have this checksum, as pip reads them", "text/plain"),
    collection.SUFFIX: ("The records of the runs, as gpbench reads them (--results)", "application/vnd.apache.parquet"),
}
_LICENCE = (
    "Whoever publishes these files names their licence.  The data sets are not among them, and have licences of their"
    " own.  gpbench is under Apache-2.0."
)
_STATES = {True: "dirty", False: "clean", None: "unknown"}  # whether the code differed from its commit

_Entity = dict[str, Any]


def write(
    path: Path,
    sheet: Sheet,
    records: Iterable[Record],
    figure: "Figure | None" = None,
    package_lists: Mapping[str, str] | None = None,
    config_dirs: Sequence[Path] = (),
) -> None:
    """Writes the crate of a table; equal runs give equal bytes."""
    # by file, oldest first: a file has each run once, and a comparison of commits has it twice
    groups: list[dict[str, Record]] = []
    for record in sorted(records, key=lambda record: record.age):
        if not any(group.setdefault(record.id, record) == record for group in groups):
            groups.append({record.id: record})
    runs = [record for group in groups for record in group.values()]
    if not runs:
        raise ConfigError(f"{path}: no run stands in this table, and an archive is of runs; name a .md or .csv file")
    files = {name: (FORMATS[format](sheet) + "\n").encode() for name, format in _TEXTS.items()}
    if figure is not None:
        from gpbench.report import figures

        files["figure.png"] = figures.encode(figure, "png")
    for number, group in enumerate(groups, 1):
        name = f"{_RECORDS}{'' if number == 1 else number}{collection.SUFFIX}"
        rows = [(record, "") for record in group.values()]  # configurations name a machine's folders
        files[name] = collection.content(rows, package_lists=package_lists)
    files |= {packages.file_name(name): text.encode() for name, text in (package_lists or {}).items()}
    known = references.names(config_dirs)
    names = [name for group in references.GROUPS for name in sorted({getattr(record, group) for record in runs})]
    cited = references.references([*(name for name in names if name in known), "gpbench"], config_dirs)
    files["references.bib"] = (references.bibtex(cited) + "\n").encode()
    description = _metadata(sheet, runs, dict(sorted(files.items())), config_dirs)
    files[_METADATA] = json.dumps(description, indent=1).encode()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name)  # with the first date of the format
            entry.create_system, entry.external_attr = 3, 0o644 << 16  # as on Unix, wherever it is written
            zipped.writestr(entry, content, zipfile.ZIP_DEFLATED)
    with output(path) as file:
        file.write(archive.getvalue())


def _metadata(
    sheet: Sheet, records: Sequence[Record], files: Mapping[str, bytes], config_dirs: Sequence[Path]
) -> _Entity:
    """The description of a crate; the order of the records does not matter.  Raises ConfigError: a card is wrong."""
    graph = _Graph()
    graph[_METADATA] = {"@type": "CreativeWork", "conformsTo": {"@id": _CRATE}, "about": {"@id": "./"}}
    graph["./"] = {}  # the first of what is described
    times = sorted(record.created for record in records if record.created)
    parts = []
    for name, content in files.items():
        text, kind = _KINDS[Path(name).suffix]
        size, checksum = str(len(content)), hashlib.sha256(content).hexdigest()
        parts.append(graph.add(name, "File", text, encodingFormat=kind, contentSize=size, sha256=checksum))
    runs = [file for file in parts if file["@id"].startswith(_RECORDS)]
    maker = graph.application("gpbench", __version__)  # before the software of the runs, of which more is said
    computation = {
        "startTime": times[:1],
        "instrument": _software(graph, records, files),
        "object": _datasets(graph, records, config_dirs),
        "result": runs,
        "additionalProperty": _compute(graph, records),
    }
    table = [file for file in parts if file not in runs and not file["@id"].endswith(".txt")]
    making = {"instrument": maker, "object": runs, "result": table}
    actions = [
        graph.add("#computation", "CreateAction", "Training and scoring of the runs", **computation),
        graph.add("#table", "CreateAction", "Making of the table from the runs", **making),
    ]
    title = f"The table {sheet.name}" if sheet.name else "A table"
    text = " ".join([f"{title} of {counted(len(records), 'run')} recorded by gpbench.", *sheet.summary])
    licence = graph.add("#licence", "CreativeWork", "Not stated", description=_LICENCE)
    facts = {"datePublished": times[-1:], "license": licence, "hasPart": parts, "mentions": actions}
    graph.add("./", "Dataset", sheet.title, description=text, **facts)
    return {"@context": _CONTEXT, "@graph": [{"@id": id, **entity} for id, entity in graph.items()]}


class _Graph(dict[str, _Entity]):
    """What a crate describes, by id."""

    def add(self, id: str, kind: str, name: str, **facts: object) -> _Entity:
        """Describes something; gives a link to it."""
        # without empty values, and without lists of one value, which JSON-LD writes as the value
        single = lambda value: value[0] if isinstance(value, list) and len(value) == 1 else value
        known = {key: value for key, v in {"name": name, **facts}.items() if (value := single(v)) not in ("", [])}
        self[id] = {"@type": kind, **known}
        return {"@id": id}

    def application(self, name: str, version: str, **facts: object) -> _Entity:
        """Describes a program."""
        id = _id(*filter(None, ["software", name, version]))
        return self.add(id, "SoftwareApplication", name, version=version, **facts)


def _id(*names: object) -> str:
    """The id of something that is described here and nowhere else."""
    return "#" + quote("-".join(map(str, names)))


def _datasets(graph: _Graph, records: Iterable[Record], config_dirs: Sequence[Path]) -> list[_Entity]:
    """The data sets, with what their cards say; their SHA-256 is that of the arrays."""
    known = {*cards.names(config_dirs)}
    links = []
    for name, checksum in sorted({(record.dataset, record.data_checksum or "") for record in records}):
        card = cards.read(name, config_dirs) if name in known else {}
        sources = [source["at"] for source in card.get("sources", ()) if source.get("at")]
        facts = {"sha256": checksum, "license": str(card.get("licence") or ""), "url": sources}
        id, title = _id("data", name, checksum[:12]), str(card.get("title") or name)
        links.append(graph.add(id, "Dataset", title, identifier=name, **facts))
    return links


def _software(graph: _Graph, records: Sequence[Record], files: Iterable[str]) -> list[_Entity]:
    """Each version of gpbench and each other program, with the commits of its runs and the packages of its numbers."""
    own = lambda record: ("gpbench", str((record.versions or {}).get("gpbench") or ""))
    groups = gather(((record.method, "") if record.imported else own(record), record) for record in records)
    links = []
    for (name, version), runs in sorted(groups.items()):
        pairs = {pair for run in runs for pair in (run.versions or {}).items() if pair[1] and pair[0] != "gpbench"}
        required = [graph.application(*pair) for pair in sorted(pairs)]
        lists = {packages.file_name(run.packages) for run in runs if run.packages} & {*files}
        required += [{"@id": name} for name in sorted(lists)]
        links.append(graph.application(name, version, softwareRequirements=required, isBasedOn=_commits(graph, runs)))
    return links


def _commits(graph: _Graph, records: Iterable[Record]) -> list[_Entity]:
    """The commits of the code, and with `creativeWorkStatus` whether the code differed from them (dirty)."""
    counts = Counter((record.commit, _STATES[record.dirty]) for record in records if record.commit)
    links = []
    for (commit, state), n in sorted(counts.items()):
        text = f"The code of {counted(n, 'run')}" + (" and of changes to it" if state == "dirty" else "")
        id, name = _id("commit", commit, state), f"gpbench at commit {commit}, {state}"
        link = graph.add(id, "SoftwareSourceCode", name, version=commit, creativeWorkStatus=state, description=text)
        links.append(link)
    return links


def _compute(graph: _Graph, records: Sequence[Record]) -> list[_Entity]:
    """The hours of the runs by the clock, and of the processors where known; devices and processors, without hosts."""
    fact = lambda id, name, value, **more: graph.add(id, "PropertyValue", name, value=value, **more)
    clock = math.fsum(value or 0.0 for record in records for value in record.seconds.values())
    processors = math.fsum(record.cpu_seconds or 0.0 for record in records)
    links = [fact("#compute-1", "hours of compute", round(clock / 3600, 4), unitText="h")]
    if processors:
        links.append(fact("#compute-2", "CPU hours without compilation", round(processors / 3600, 4), unitText="h"))
    counts: Counter[str] = Counter()
    for record in records:
        host = record.host or {}
        sizes = [f"{host[key]} {unit}" for key, unit in (("cores", "cores"), ("memory_gib", "GiB")) if host.get(key)]
        names = dict.fromkeys([record.device, host.get("cpu")])  # a processor is a device too
        counts[", ".join(map(str, filter(None, [*names, *sizes])))] += 1
    machines = [(f"#machine-{k}", text, n) for k, (text, n) in enumerate(sorted(counts.items()), 1) if text]
    return links + [fact(id, "machine", text, description=counted(n, "run")) for id, text, n in machines]
