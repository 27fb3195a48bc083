"""Converts records of schema 1 to schema 2: `python scripts/convert_records.py [--dry-run] results/*/records.parquet`

Takes Parquet files of `gpbench collect` and results folders.  Of each record it changes the id, the cell, the schema
and the stored configuration, and no other field; a record of schema 2 stays as it is.  Nothing is written unless all
checks hold: each old id is what schema 1 makes of the stored configuration, and as many records come out, no id twice.
"""

import argparse
import hashlib
import json
import shutil
import sys
from pathlib import Path

import yaml

from gpbench.records import collected, folder, identity

_OLD, _FAMILIES = "gpbench.methods", {"ep": ("sep.SEP", "gfitc.GFITC"), "vi": ("svi.SVI", "vsgpr.VSGPR", "svdgp.SVDGP"),
    "exact": ("gpr.GPR",), "baselines": ("constant.Constant", "linear.Linear", "logistic.Logistic")}
MOVES: dict[str, str] = {f"{_OLD}.{name}": f"{_OLD}.{family}.{name}" for family, of in _FAMILIES.items() for name in of}
"""Method targets that moved."""

_SE, _AUTO = {"kernel": "squared_exponential"}, {"likelihood": "auto"}
ADDED: dict[str, dict] = {
    f"{_OLD}.sep.SEP": _SE | _AUTO,
    f"{_OLD}.gfitc.GFITC": _SE | _AUTO,
    f"{_OLD}.svi.SVI": _SE | _AUTO,
    f"{_OLD}.svdgp.SVDGP": _SE | _AUTO,
    f"{_OLD}.vsgpr.VSGPR": _SE,
    f"{_OLD}.gpr.GPR": _SE,
}
"""Keys that methods (by old target) got later, each with the value that does what was done before; a key that the
stored configuration has stays as it is."""

_VALUES = {("likelihood", "gaussian"): ("likelihood", "auto"), ("nodes", 20): None}
RENAMED: dict[str, dict[tuple[str, object], tuple[str, object] | None]] = {
    f"{_OLD}.svi.SVI": _VALUES,
    f"{_OLD}.svdgp.SVDGP": _VALUES,
}
"""Values of keys (by old target) that are now others, or None for a key that is gone."""

TARGET_BY_VALUE: dict[str, tuple[str, dict[object, str]]] = {}

PROTOCOL_ADDED = {"clean": {"target_noise": 0.1}, "hl2016": {"target_noise": 0.1}}


def method(node: dict) -> dict:
    """The node of a method as it is composed today."""
    old = node["_target_"]
    node = {**node, **{key: value for key, value in ADDED.get(old, {}).items() if key not in node}}
    target = MOVES.get(old, old)
    if old in TARGET_BY_VALUE:
        key, targets = TARGET_BY_VALUE[old]
        target = targets[node[key]]
    pairs = ((key, value) for key, value in node.items() if key != "_target_")
    renamed = RENAMED.get(old, {})
    items = [renamed.get((key, value), (key, value)) if not isinstance(value, dict | list) else (key, value)
             for key, value in pairs]  # fmt: skip
    return {"_target_": target, **dict(item for item in items if item)}


def configuration(old: dict) -> dict:
    """The stored configuration of a run as it is composed today."""
    protocol = {**PROTOCOL_ADDED.get(old["protocol"]["name"], {}), **old["protocol"]}
    return {**old, "method": method(old["method"]), "protocol": protocol, "implied": {}}


def convert(record: dict, text: str) -> tuple[dict, dict]:
    """The record and the configuration of schema 2.  Raises ValueError where the old id cannot be explained."""
    old = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    member = _member(record, old)
    new = configuration(old)
    shared = identity.of(new, record["data_checksum"])
    cell = {key: value for key, value in member.items() if key == "output"}
    ids = {
        "schema": identity.SCHEMA,
        "id": identity.run_id(**shared, **member, seed=record["seed"]),
        "cell": identity.cell_id(**shared, **cell),
    }
    return {**ids, **{key: value for key, value in record.items() if key not in ids}}, new


def _member(record: dict, old: dict) -> dict:
    """The split, and the output with which schema 1 gives the record its id."""
    outputs = [{}] if record.get("output") is None else [{"output": o} for o in range(old["dataset"]["outputs"])]
    for output in outputs:
        member = {"split": record["split"], **output}
        if record["id"] == _digest_1({**_identity_1(old, record["data_checksum"]), **member, "seed": record["seed"]}):
            return member
    raise ValueError(f"{record['id']}: its stored configuration does not have this id")


def _identity_1(cfg: dict, checksum: str) -> dict:
    """The identity of schema 1: the whole protocol, and the method but for a likelihood that came later."""
    later = cfg["method"]["_target_"] in ("gpbench.methods.svi.SVI", "gpbench.methods.svdgp.SVDGP")
    drop = {"likelihood": "gaussian"} if later else {}
    node = {key: value for key, value in cfg["method"].items() if key not in drop or value != drop[key]}
    same = identity.of({**cfg, "run": {}}, checksum)
    timing = {key: cfg["run"][key] for key in ("devices", "processes", "cores")} if cfg["run"].get("timing") else {}
    of_1 = {"method": node, "protocol": cfg["protocol"], "data": same["data"], "data_checksum": checksum}
    return of_1 | ({"timed": timing} if timing else {})


def _digest_1(value: dict) -> str:
    def canonical(value):
        if isinstance(value, dict):
            return {str(key): canonical(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [canonical(item) for item in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def rows_of(rows: list[tuple[dict, str]]) -> list[tuple[dict, str]]:
    """All records of a store with their configurations, converted and checked."""
    new = []
    for record, text in rows:
        if record.get("schema") == identity.SCHEMA:
            new.append((record, text))
            continue
        changed, cfg = convert(record, text)
        fields = record.keys() - {"id", "cell", "schema"}
        if fields != changed.keys() - {"id", "cell", "schema"} or any(changed[key] != record[key] for key in fields):
            raise ValueError(f"{record['id']}: a number changed")
        new.append((changed, yaml.safe_dump(folder.clean(cfg), sort_keys=False)))
    if len({record["id"] for record, _ in new}) != len(rows):
        raise ValueError("two records have one id")
    return new


def file(path: Path, dry: bool) -> int:
    """Converts a Parquet file of records; how many it has."""
    rows = rows_of(collected.read(path))
    if not dry:
        collected.write(path, rows)
        if collected.read(path) != rows:
            raise ValueError(f"{path} does not read back as it was written")
    return len(rows)


def results(path: Path, dry: bool) -> int:
    """Converts a results folder; how many records it has.  Traces move with their records."""
    runs = path / "runs"
    ids = [entry.name for entry in sorted(runs.iterdir()) if entry.is_dir() and not entry.name.startswith(".")]
    old = [(json.loads((runs / id / "record.json").read_text()), (runs / id / "config.yaml").read_text()) for id in ids]
    rows = rows_of(old)
    for id, (record, text) in zip(ids, rows, strict=True):
        if dry or record["id"] == id:
            continue
        beside = runs / f".converted-{record['id']}"
        shutil.copytree(runs / id, beside)
        (beside / "record.json").write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
        (beside / "config.yaml").write_text(text)
        beside.rename(runs / record["id"])
        shutil.rmtree(runs / id)
    return len(rows)


def main() -> int:
    """Converts every path of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--dry-run", action="store_true", help="check, and write nothing")
    args = parser.parse_args()
    for path in args.paths:
        count = (file if path.suffix == collected.SUFFIX else results)(path, args.dry_run)
        print(f"{path}: {count} records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
