"""A small results folder and its site, for the tests of the report."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from samples import sample

from gpbench.cli import main
from gpbench.experiments import definition, plan
from gpbench.records.identity import SCHEMA
from gpbench.records.record import Record
from gpbench.records.store import Store

HOSTILE = '<img src=x onerror="complain()"> & co'
NLL = {"sep": 0.40, "svi": 0.401, "gfitc": 0.70, "constant": 0.69, "logistic": 0.40}
EXPERIMENT = """\
title: <i>Own</i> table
paper: mine
presets: {quick: 2 splits, full: 3 splits}
runs:
  - dataset: [heart, wdbc]
    method: [constant, logistic]
    split: {quick: "[0,1]", full: "[0,1,2]"}
table: {rows: dataset, columns: method, metrics: [nll]}
"""
RANKING = """\
title: Own ranks
runs_of: own
table: {kind: ranks, label: method, metrics: [nll]}
figures:
  nll: {kind: dots, label: method, metric: nll, title: Own dots}
  diagram: {kind: ranks, label: method, metrics: [nll]}
  effects: {kind: effects, label: method}
"""
CLAIMS = """\
better:
  text: Logistic regression has a lower NLL than <b>the constant</b>
  experiments: [own]
  clauses: [{difference: nll, a: {method: logistic}, b: {method: constant}, where: {dataset: heart}, below: 0}]
  control: others
  printed: contradicted
large:
  text: Its NLL is above 1
  clauses: [{value: nll, of: {method: logistic, dataset: heart}, above: 1, control: others}]
traced:
  text: Its NLL is below 0.5 in the first two seconds
  experiments: [own]
  clauses: [{value: {metric: nll, seconds: 2}, of: {method: logistic, dataset: heart}, below: 0.5, control: others}]
other:
  text: It is cheap
  reason: the paper gives no figure
"""


def record(dataset: str, method: str, split: int, **fields) -> Record:
    """A finished run; its nll increases with the split, and differs significantly between methods."""
    nll = NLL.get(method, 0.5) + 0.01 * split + 0.002 * (crc32(f"{dataset}{method}{split}".encode()) % 5)
    name = {"id": "", "cell": f"{dataset}{method}", "dataset": dataset, "method": method, "split": split}
    facts = {"setting": "m=15%", "protocol": "hl2016", "precision": "float64", "preset": "full", "device": "a cpu"}
    facts |= {"train_rows": 900, "test_rows": 100, "commit": "c" * 40, "dirty": False, "versions": {"jax": "0.10"}}
    values = {"metrics": {"nll": nll, "error": nll / 3}, "seconds": {"train": 2.0 + split}, "objective": -3.0}
    return sample(**name | facts | values | {"created": f"2026-01-0{split + 1}T00:00:00"} | fields)


def records(folder: Path) -> list[Record]:
    """Three methods on three data sets and one with HTML in its name; one run diverged, one is dirty, two are of the
    quick preset; and runs of EXPERIMENT."""
    axes = product(("pima", "crabs", "heart", HOSTILE), ("sep", "svi", "gfitc"), range(4))
    records = [record(*axis) for axis in axes]
    records[0] = replace(records[0], status="diverged", message="<b>objective</b> is NaN", metrics={})
    records[1] = replace(records[1], dirty=True)
    records += [record("pima", "sep", s, preset="quick", setting="m=15%, steps=40", cell="quick") for s in range(2)]
    records += of_experiment(folder)
    return [replace(one, id=one.id or f"{k:016x}") for k, one in enumerate(records)]


def write(folder: Path, records: list[Record]) -> Path:
    for one in records:
        config = {"method": {"name": one.method}, "protocol": {"name": "hl2016"}}
        has_curve = one.dataset in ("pima", "heart")
        curve = {"seconds": np.arange(1.0, 6.0), "nll": np.geomspace(1, 0.3, 5)} if has_curve else {}
        Store(folder).write(one, config, {"step": np.arange(5), **curve})
    return folder


def make(results: Path, out: Path, *words: str) -> Path:
    """The site of `gpbench report` with three experiments only, for speed."""
    own = out.parent / "conf"
    (own / "experiment").mkdir(parents=True, exist_ok=True)
    (own / "experiment" / "own.yaml").write_text(EXPERIMENT)
    (own / "experiment" / "ranking.yaml").write_text(RANKING)
    (own / "claims").mkdir(exist_ok=True)
    (own / "claims" / "mine.yaml").write_text(CLAIMS)
    (own / "claims" / "wrong.yaml").write_text("a: {text: No clauses}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(definition, "names", lambda folders=(): [*["own", "ranking"] * bool(folders), "sep/fig1_right"])
        assert main(["report", "--results", str(results), "--out", str(out), "--config-dir", str(own), *words]) == 0
    return out


def of_experiment(folder: Path, text: str = EXPERIMENT, **fields) -> list[Record]:
    """Runs of an experiment's full preset, without two splits of one cell."""
    (folder / "experiment").mkdir(parents=True)
    (folder / "experiment" / "own.yaml").write_text(text)
    jobs = map(definition.overrides, definition.read("own", [folder]).jobs("full"))
    return [
        record(*names, run.split, id=run.id, schema=SCHEMA, cell=run.cell, setting="", protocol="clean", **fields)
        for of_job in plan.plans(list(jobs), [folder])
        if (names := (of_job.cfg["dataset"]["name"], of_job.cfg["method"]["name"]))
        for run in of_job.runs
        if names != ("wdbc", "constant") or run.split == 0
    ]
