"""Submissions scored on our splits by our metrics, as records marked as imported."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpbench import data as data_layer
from gpbench import metrics, own_metrics, paths, plugins
from gpbench.core import forms
from gpbench.data import cards, splits
from gpbench.errors import ConfigError, located, refuse, require
from gpbench.imports.submissions import Submission, read
from gpbench.own_metrics import OwnMetrics
from gpbench.records import identity
from gpbench.records.absences import FAULT, LARGE, LATE
from gpbench.records.arrays import MOST_ROWS, Predictions
from gpbench.records.record import Record
from gpbench.records.store import Store

if TYPE_CHECKING:
    from gpbench.data.dataset import Dataset
    from gpbench.data.scaled import ScaledSplit

_NAME = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True)
class _ImportedRun:
    """The record of a submission from a file, the configuration that identifies it, its predictions in our format."""

    file: Path
    record: Record
    config: dict[str, Any]
    predictions: Predictions


@dataclass(frozen=True)
class Importer:
    """Common facts of all submissions."""

    protocol: str  # the protocol under which they are listed
    precision: str  # precision of the other program
    split_set: str | None  # split set of every data set; None for each card's default
    config_dirs: Sequence[Path] = ()  # folders of the user's own cards and metrics

    def score(self, file: Path) -> list[_ImportedRun]:
        """Every submission of a file, checked and scored."""
        submissions = read(file)
        ours = {name.lower() for name in paths.yaml_files("method", plugins.folders())}
        for name in (submission.method for submission in submissions):
            fault = "a name has letters, digits, _, - and . only, and does not begin with - or ."
            require(_NAME.fullmatch(name), f"{file}: method {name!r}: {fault}", ConfigError)
            fault = f"{file}: method {name!r} is one of gpbench's; give yours a name of its own"
            require(name.lower() not in ours, fault, ConfigError)
        own = own_metrics.load(plugins.folders(self.config_dirs))
        checksum = sha256(file.read_bytes()).hexdigest()
        datasets: dict[str, tuple[Mapping, Dataset]] = {}
        for name in (submission.dataset for submission in submissions):
            if name not in datasets:
                with located(file):
                    card = splits.with_set(cards.read(name, self.config_dirs), self.split_set)
                datasets[name] = card, data_layer.load(card, config_dirs=self.config_dirs)
        return [self._score(item, *datasets[item.dataset], own, checksum) for item in submissions]

    def _score(
        self, submission: Submission, card: Mapping, dataset: "Dataset", own: OwnMetrics, checksum: str
    ) -> _ImportedRun:
        outputs = ", ".join(f"{k} ({name})" for k, name in enumerate(dataset.outputs))
        with located(submission.title):
            splits.split_numbers(card, submission.split)
            fault = f"the column output is empty; the outputs of {dataset.name} are {outputs}"
            require(not outputs or submission.output is not None, fault, ConfigError)
            splits.outputs(card, "all" if submission.output is None else submission.output)
            train, test = splits.indices(card, dataset, submission.split, output=submission.output)
            # scaling by "none" leaves the original units, in which the predictions are
            prepared = data_layer.prepare(dataset, train, test, inputs="none", targets="none", output=submission.output)
        submission = submission.in_order_of(test, train, len(dataset.y))
        lost = submission.lost
        outcome, predictions = (_lost(lost, prepared.task), {}) if lost else _scores(submission, prepared, own, card)
        default = splits.identity(cards.read(submission.dataset, self.config_dirs))["set"]
        other_set = f"set={self.split_set}" if self.split_set not in (None, default) else ""
        above = "" if card.get("threshold") is None else f"dataset.threshold={card['threshold']:g}"
        setting = ", ".join(filter(None, [submission.setting, other_set, above]))
        config = {
            "dataset": dict(card),
            "method": {"name": submission.method, "setting": setting, "imported": True},
            "protocol": {"name": self.protocol, "precision": self.precision},
            "run": {},
            "split": submission.split,
            "config_dirs": [str(folder) for folder in self.config_dirs],
        }
        shared = identity.identify(config, dataset.checksum)
        member = splits.Member(submission.split, submission.output)
        record = Record.create(
            schema=identity.SCHEMA,
            id=identity.run_id(**shared, **member.identity, seed=0),
            cell=identity.cell_id(**shared, **member.cell),
            imported=True,
            source=submission.file.name,
            source_checksum=checksum,
            dataset=card["name"],
            method=submission.method,
            setting=setting,
            protocol=self.protocol,
            seed=0,
            data_checksum=dataset.checksum,
            precision=self.precision,
            versions=submission.versions,
            **dict.fromkeys(("preset", "device", "commit", "dirty")),
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            split=submission.split,
            output=None if submission.output is None else dataset.outputs[submission.output],
            **outcome,
            seconds={} if submission.seconds is None else {"train": submission.seconds},
            cpu_seconds=submission.seconds,
            held_out=prepared.held_out,
            split_set=splits.identity(card)["set"],
            train_rows=len(train),
            test_rows=len(test),
        )
        return _ImportedRun(submission.file, record, config, predictions)


def _lost(message: str, task: str) -> dict[str, Any]:
    """The fields of a record without predictions, which were lost for this reason."""
    names, reason = metrics.names(task), message if message in (LATE, LARGE) else FAULT
    fields = {"metrics": dict.fromkeys(names), "undefined": dict.fromkeys(names, reason)}
    return {"status": "failed", "message": message, **fields}


def _scores(
    submission: Submission, prepared: "ScaledSplit", own: OwnMetrics, card: Mapping
) -> tuple[dict[str, Any], Predictions]:
    """The fields of a record with the scores of predictions, and these by row where they are few."""
    import jax.numpy as jnp

    from gpbench.core.predictive import CategoricalPredictive, GaussianPredictive
    from gpbench.core.predictive.numerical import tails
    from gpbench.train import result
    from gpbench.train.doubts import doubts, unit_doubts

    submission.check_values(prepared.classes, float(np.var(prepared.y)))
    threshold = card.get("threshold")
    is_gaussian, y_test = prepared.classes == 0 and submission.form == "mean", jnp.asarray(prepared.y_test)
    arrays: Mapping[str, Any]
    if is_gaussian:
        value = GaussianPredictive(*(jnp.asarray(submission.values[n]) for n in ("mean", "variance")))
        arrays = value.arrays(y_test)
        if threshold is not None:
            arrays = arrays | tails(value.cdf, y_test, jnp.asarray(threshold, float), arrays)
    elif prepared.classes == 0:
        arrays = _number_arrays(submission, prepared.y_test)
        if threshold is not None and "crps" in arrays:
            above = np.maximum(prepared.y_test, threshold)
            arrays |= {"tail_crps": _number_arrays(submission, above, threshold)["crps"]}
        if threshold is not None and submission.form == "edge":
            below = _number_arrays(submission, np.full_like(prepared.y_test, threshold))["cdf"]
            log_below = np.log(np.maximum(below, np.finfo(float).tiny))
            arrays |= {"above": (prepared.y_test > threshold).astype(float), "log_below": log_below}
    else:
        arrays = CategoricalPredictive(jnp.asarray(submission.log_probs(prepared.classes))).arrays(y_test)
        fault = "has probability 0 for its target, and the nll is infinite"
        submission.require(np.isfinite(arrays["log_prob"]), fault)
    batch = {name: np.asarray(array)[None] for name, array in arrays.items()}
    test_set = result.scored(prepared, batch, 0)
    scores = result.metric_fields(prepared.task, test_set, own)
    absurd = doubts(prepared, test_set) if test_set.log_prob.size else {}
    absurd |= unit_doubts(prepared, test_set) if is_gaussian else {}
    is_kept = len(prepared.y_test) <= MOST_ROWS and bool({"cdf", "log_probs"} & arrays.keys())
    by_row = result.predictions_by_row(prepared, batch, 0) if is_kept else {}
    return {"status": "done", "message": None, **scores, **({"diagnostics": absurd} if absurd else {})}, by_row


def _number_arrays(submission: Submission, y: np.ndarray, least: float | None = None) -> dict[str, np.ndarray]:
    """What samples, bins, or quantiles with the means beside them determine, with what is below `least` moved there."""
    values = submission.matrix(submission.form)
    if submission.form == "edge":
        probs = submission.matrix("bin")
        return forms.bins(*((values, probs) if least is None else forms.bins_above(values, probs, least)), y)
    values = values if least is None else np.maximum(values, least)
    if submission.form == "sample":
        return forms.samples(values, y)
    levels = [float(name[9:]) for name in submission.number_columns if name != "mean"]
    means = {"mean": submission.values["mean"]} if "mean" in submission.values else {}
    return forms.quantiles(levels, values, y) | means


def write(runs: Sequence[_ImportedRun], store: Store, *, again: bool = False) -> int:
    """Records the runs that are not recorded yet, and counts them.  Raises ConfigError, before it writes any, where two
    files have a run, or a record came from another file and `again` is False."""
    new: dict[str, _ImportedRun] = {}
    for run in runs:
        record, earlier = run.record, store.get(run.record.id)
        same = earlier and earlier.source_checksum == record.source_checksum
        other = new[record.id].file if record.id in new else None
        recorded = "is recorded from another file"
        refuse(
            f"{run.file}: {record.method} on {record.dataset} split {record.split} ",
            (other, f"is in {other} too; take it out of one of them"),
            (earlier and not same and not again, f"{recorded} ({earlier and earlier.source}); --again replaces it"),
        )
        if not same:
            new[record.id] = run
    for run in new.values():
        store.write(run.record, run.config, {}, predictions=run.predictions, replace=True)
    return len(new)
