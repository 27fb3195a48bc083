"""Records of a stranger's, made from whole ones by a seed: each is sealed, as a stranger can seal it, and means harm.

`write` puts one into a results folder.  Whatever it makes run, or makes somebody write, leaves a file in `trap.marks`.
"""

import io
import json
import os
import pickle
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import bombs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from gpbench.records import folder as files

MARKUP = ("\x1b[2J\x1b]0;owned\x07", "\u202egnp.exe\u2066", "[click](javascript:alert(1))")
MARKUP += ("![x](http://127.0.0.1:9/x.png)", "`id`", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>')
MARKUP += ("$\\input{/etc/passwd}$", "\\write18{id}", "$\\frac{", "=cmd|' /C calc'!A0", "a|b\n| --- |")
MARKUP += ("../../../../tmp/escape", "/etc/cron.d/x", "\ue000best\ue002", "{{ 7 * 7 }}{% raw %}")
MARKUP += ("\x00\ud800".encode("utf-8", "backslashreplace").decode(), "%s%n{0.__class__}", "a" * 5000, "null", "-rf")
MARKUP += ("",)
HUGE = (2**63 - 1, -(2**63), 2**31, 10**15, 1e150, -1e150, 5e-324, 0.0, -1)


@dataclass(frozen=True)
class Trap:
    """Places that a hostile record names: a folder of marks, a module that leaves one, and a secret file."""

    root: Path

    @property
    def marks(self) -> Path:
        """Folder in which every executed payload leaves a file."""
        return self.root / "marks"

    def set(self) -> "Trap":
        code = f"import pathlib; pathlib.Path({str(self.marks)!r}, 'MODULE').write_text('x')\n"
        code += f"def run(*a, **k): pathlib.Path({str(self.marks)!r}, 'CALL').write_text('x')\n"
        for group, text in {
            "metric": "_target_: evil_of_a_record.run\ntasks: [regression, binary]\n",
            "method": "_target_: evil_of_a_record.run\nname: linear\n",
            "kernel": "_target_: evil_of_a_record.run\n",
            "reader": "_target_: evil_of_a_record.run\n",
        }.items():
            (self.root / "evil" / group).mkdir(parents=True)
            (self.root / "evil" / group / "bad.yaml").write_text(text)
        (self.root / "evil" / "evil_of_a_record.py").write_text(code)
        self.marks.mkdir()
        return self

    def call(self, name: str) -> str:
        return f"open({str(self.marks / name)!r}, 'w').write('x')"


class _Payload:
    """An object whose pickle is a program."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def write(results: Path, source: Path, seed: int, trap: Trap) -> str:
    """Writes a hostile record, made of a whole one by a seed, into a results folder and returns its id."""
    rng = random.Random(seed)
    id = f"{seed:016x}"
    folder = results / "runs" / id
    shutil.copytree(source, folder)
    record, _ = files.unseal((source / "record.json").read_bytes())
    config = yaml.safe_load((source / "config.yaml").read_text())
    record["id"] = id
    attacks = [_target, _target, _folders, _stores, _paths, _names, _names, _numbers, _pickles, _arrays, _links, _bombs]
    for attack in rng.sample(attacks, rng.randint(1, 2)) if seed % 3 else [attacks[seed // 3 % len(attacks)]]:
        attack(rng, trap, folder, record, config)
    _seal(folder, record, config)
    return id


def _seal(folder: Path, record: dict, config: dict) -> None:
    if not (folder / files.CONFIG).is_symlink():
        (folder / files.CONFIG).write_text(yaml.safe_dump(config, sort_keys=False))
    others = {path.name: path.read_bytes() for path in folder.iterdir() if path.name in files.FILES and path.is_file()}
    (folder / files.RECORD).write_bytes(files.seal(record, others))


def _target(rng, trap, folder, record, config):
    mark = trap.call(f"target-{rng.random()}")
    payload = rng.choice(
        [
            {"_target_": "numpy.testing.measure", "code_str": mark},
            {"_target_": "evil_of_a_record.run"},
            {"_target_": "builtins.exec", "_args_": [mark]},
            {"_target_": "os.system", "command": f"touch {trap.marks}/system"},
            {"_target_": "subprocess.run", "args": ["touch", f"{trap.marks}/run"]},
            {"_target_": "gpbench.cli.main", "argv": ["rm", record["id"]]},
            {"_target_": "gpbench.data.store.save", "dataset": 1, "card": {}, "store": str(trap.marks)},
            {"_target_": "gpbench.__main__.x"},
            {"_target_": "optax.adam.__init__.__globals__", "x": 1},
            {"_target_": "gpbench.methods.base.eqx.os", "x": 1},
            {"_target_": "hydra.utils.instantiate", "config": {"_target_": "builtins.exec", "_args_": [mark]}},
            {"_target_": ["os", "system"]},
            {"_target_": "${oc.env:HOME}", "x": "${oc.create:{a: 1}}"},
        ]
    )
    place = rng.choice(["method", "key", "deep", "kernel", "likelihood", "reader", "partial", "protocol", "sum"])
    method = config["method"]
    if place == "method":
        config["method"] = {"name": method.get("name"), "steps": 0, **payload}
    elif place == "key":
        method[rng.choice(sorted(method))] = payload
    elif place == "deep":
        method["search"] = {"ridge": [[[{"a": payload}]]]}
    elif place == "kernel":
        method["kernel"] = payload
    elif place == "sum":
        method["kernel"] = {"sum": ["linear", payload]}
    elif place == "likelihood":
        method["likelihood"] = payload
    elif place == "protocol":
        config["protocol"]["optimiser"] = payload
    elif place == "partial":
        method["rates"] = {**payload, "_partial_": True, "_recursive_": False}
    else:
        config["dataset"]["sources"] = [{"kind": "file", "path": "/etc/hostname", "reader": payload}]
        config["dataset"]["checksum"] = None
    if rng.random() < 0.5:
        config["config_dirs"] = [str(trap.root / "evil")]


def _folders(rng, trap, folder, record, config):
    config["config_dirs"] = [str(trap.root / "evil"), "/proc/self/cwd", "."]
    config["method"][rng.choice(["kernel", "_target_", "name"])] = rng.choice(["bad", "evil_of_a_record.run"])
    config["dataset"]["sources"] = [{"kind": "file", "path": "/etc/hostname", "reader": "bad"}]


def _stores(rng, trap, folder, record, config):
    outside = rng.choice([str(trap.marks), str(trap.marks / "new"), "~/escape", "../../escape"])
    config["data"] = {"store": outside, "mirror": outside, "offline": False}
    config["run"]["results"] = outside
    config["dataset"]["checksum"] = rng.choice([None, "0" * 64])
    config["dataset"]["sources"] = [
        {"kind": "official", "at": "http://127.0.0.1:9/", "files": {"../../x.csv": "0" * 64}, "reader": "table"}
    ]


def _paths(rng, trap, folder, record, config):
    name = rng.choice(["../../marks/x", "/etc/passwd", "..", "a/../../b", "con", "~root", "x" * 300, "", None, 3])
    config["dataset"]["name"] = name
    if isinstance(name, str):
        record["dataset"] = name
    record["source"] = record["split_set"] = str(name)


_FIELDS = "dataset method setting protocol preset message device commit created cell"


def _names(rng, trap, folder, record, config):
    for field in _FIELDS.split():
        if rng.random() < 0.5:
            record[field] = rng.choice(MARKUP)
    if rng.random() < 0.5:
        text = rng.choice(MARKUP)
        record["metrics"] = {**record["metrics"], text: 1.5}
        record["seconds"] = {**record["seconds"], text: 1.5}
        record["versions"] = {text: text}
    record["output"] = rng.choice([None, *MARKUP])
    config["dataset"]["columns"] = [rng.choice(MARKUP)]
    config["method"]["name"] = rng.choice(MARKUP)
    config["changes"] = {rng.choice(MARKUP): rng.choice(MARKUP)}


def _numbers(rng, trap, folder, record, config):
    for field in ("split", "seed", "steps", "train_rows", "test_rows", "group", "devices", "objective", "schema"):
        if rng.random() < 0.4:
            value = rng.choice(HUGE)
            record[field] = float(value) if field == "objective" else int(min(max(value, -(2**63)), 2**63 - 1))
    record["split"] = abs(record["split"]) % 2**63
    record["schema"] = min(record.get("schema") or 1, 1)
    record["metrics"] = {name: float(rng.choice(HUGE[4:])) for name in record["metrics"]}
    for key in rng.sample(sorted(config["method"]), 2):
        config["method"][key] = rng.choice([*HUGE, 10**30, float("1e300"), -5, [1] * 1000])
    config["split"] = rng.choice([record["split"], -1, 10**12, [0] * 10])


def _pickles(rng, trap, folder, record, config):
    content = io.BytesIO()
    np.savez(content, allow_pickle=True, X=np.array([_Payload(trap.marks / "pickle")], dtype=object))
    for name in (files.TRACE, files.STATE):
        if rng.random() < 0.7:
            (folder / name).write_bytes(
                rng.choice([content.getvalue(), pickle.dumps(_Payload(trap.marks / "raw")), b"\x93NUMPY" + b"[" * 1000])
            )
    extension = {b"ARROW:extension:name": b"arrow.py_extension_type"}
    extension[b"ARROW:extension:metadata"] = pickle.dumps(_Payload(trap.marks / "arrow"))
    field = pa.field("row", pa.binary(), metadata=extension)
    pq.write_table(pa.table([pa.array([b"x"])], schema=pa.schema([field])), folder / "predictions.parquet")


def _arrays(rng, trap, folder, record, config):
    """A saved state and a trace with numbers, shapes and types that no run leaves."""
    changes = (
        lambda values: np.full(values.shape, np.nan),
        lambda values: np.full(values.shape, -1e308),
        lambda values: values[..., None],
        lambda values: values.astype("U9"),
        lambda values: values.astype(complex),
        lambda values: np.zeros(0),
        lambda values: np.array(7),
        lambda values: np.zeros((3, 0, 2)),
        lambda values: np.full(values.shape, np.datetime64("2020-01-01")),
    )
    for name in (files.STATE, files.TRACE):
        try:
            with np.load(folder / name) as whole:
                arrays = dict(whole)
        except (ValueError, OSError):  # another attack has been here
            continue
        changed = rng.sample(sorted(arrays), rng.randint(1, len(arrays)))
        np.savez(folder / name, **arrays | {key: rng.choice(changes)(arrays[key]) for key in changed})


def _links(rng, trap, folder, record, config):
    name = rng.choice([files.CONFIG, files.TRACE, files.STATE])
    (folder / name).unlink(missing_ok=True)
    os.symlink(rng.choice(["/etc/passwd", "/dev/zero/x", str(trap.marks / "absent"), ".", "../../.."]), folder / name)


def _bombs(rng, trap, folder, record, config):
    name, make, *_ = rng.choice([*bombs.RECORDS.values()])
    (folder / name).unlink(missing_ok=True)  # which may be a link
    (folder / name).write_bytes(make())
    config["dataset"]["splits"] = {"sets": {"random90": rng.choice([10**9, 20])}}
    config["dataset"]["sources"] = [{"kind": "sklearn", "loader": "svmlight_file", "arguments": {"f": "/dev/zero"}}]


def rows() -> str:
    """A table of predictions as `gpbench import` reads it, each line of which is hostile."""
    lines = ["dataset,split,method,row,mean,variance"]
    for text in MARKUP:
        lines.append(",".join(json.dumps(value) for value in ("sinc", 0, text, 0, 0.0, 1.0)))
    return "\n".join(lines)
