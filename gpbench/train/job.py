"""One job, from its plan to records: data -> groups of one shape -> training -> metrics -> records."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gpbench.config.merge import leaves
from gpbench.data.splits import Member, label
from gpbench.errors import DivergedError, GpbenchError, MemoryShortage, Stopped
from gpbench.log import log, warn
from gpbench.records import packages
from gpbench.records.absences import LARGE, LATE, divergence
from gpbench.records.locks import release
from gpbench.records.plan import Run, RunPlan
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.train import result
from gpbench.train.checkpoint import Checkpoint, arrays_of
from gpbench.train.context import Context, groups, load
from gpbench.train.doubts import warnings
from gpbench.train.faults import one_line_if_users_code
from gpbench.train.limit import enforced
from gpbench.train.loop import fit
from gpbench.train.progress import Progress
from gpbench.train.search import recalibrated
from gpbench.train.stop import StopRequest
from gpbench.train.trackers import Trackers

_Arrays = dict[str, np.ndarray]
_Trained = tuple[Run, Record, dict[str, Any]]  # a run with its record, and its trace, predictions and state


def run_job(plan: RunPlan, *, store: Store, progress: Progress, stop: StopRequest) -> list[Record]:
    """Trains and records the runs of a plan that are not recorded yet, and with `run.again` the others too; the records
    of all of them, in its order.  Raises Stopped once a checkpoint is written."""
    context = Context(plan.with_extras_of(store))
    trackers = Trackers(context.run.get("log", []) if context.devices.leads else [])
    job = _Job(context, store, progress, trackers, stop, dict(plan.recorded(store)))
    if len(job.records) < len(plan.runs):
        with trackers:
            for group in groups(context):
                job.complete(group)
        if job.context.devices.leads:
            for text in warnings(job.trained):
                warn(text)
    return [job.records[run.id] for run in plan.runs]


@dataclass
class _Job:
    """A job under way.  `records`, by id, need not be made or are made by now; `trained` are those made by this job."""

    context: Context
    store: Store
    progress: Progress
    trackers: Trackers
    stop: StopRequest
    records: dict[str, Record]
    trained: list[Record] = field(default_factory=list, init=False)

    def complete(self, group: Sequence[Run]) -> None:
        """Records every run of a group.  Raises Stopped between trainings, too."""
        context, again = self.context, self.context.plan.again
        checkpoint = context.checkpoint(group, again=again)
        while missing := [run for run in group if run.id not in self.records]:
            is_asked = bool((self.trained or self.stop.is_signalled) and self.stop.reason)
            if any(context.devices.any(is_asked)):
                reason = self.stop.reason or "another process"
                raise Stopped(f"stopped by {reason} with runs left; run the same command to train them")
            runs = self._resumable(checkpoint, missing)
            ids = ([run.id for run in chunk] for chunk in (missing, runs))
            context.devices.must_agree([context.plan.results, *ids])
            try:
                trained = self._train(runs, checkpoint)
            except MemoryShortage as error:
                if not context.cpu_limit:
                    raise
                failed = partial(result.failure, context, reason=LARGE, message=str(error))
                trained = [(run, failed(run), {"trace": {}}) for run in runs]
            for run, record, arrays in trained:
                if run in missing:
                    self._record(record, **arrays)
            for _, record, _ in trained:  # after all are on the disk: a tracker may wait for a server
                self.trackers.end(record)
            if context.devices.leads:
                checkpoint.delete()
                context.checkpoint(group, again=False).delete()  # recorded now, however that was left
            context.devices.meet("recorded")

    def _resumable(self, checkpoint: Checkpoint, missing: Sequence[Run]) -> list[Run]:
        """The very runs of the checkpoint where some are missing: across groupings numbers agree to rounding only."""
        if (facts := checkpoint.facts()) is None:
            return list(missing)
        members = [Member(*names) for names in facts["members"]]
        runs = [run for run in self.context.plan.runs if run.member in members]
        if set(runs) & set(missing):
            return sorted(runs, key=lambda run: members.index(run.member))
        checkpoint.delete()  # of a process killed after its last record
        return list(missing)

    def _record(self, record: Record, trace: _Arrays, **more: _Arrays | None) -> None:
        if self.context.devices.leads:
            plan = self.context.plan
            was = known.status if (known := self.store.get(record.id)) else "failed"
            if record.status == "failed" and was != "failed":
                warn(f"{record.label}: {record.message}; the record that there was is kept")
            else:
                replace, package_list = plan.again or bool(plan.extras) or was == "failed", packages.installed()
                self.store.write(record, plan.cfg, trace, **more, package_list=package_list, replace=replace)
        self.records[record.id] = record
        self.trained.append(record)

    def _end_late(self, runs: Sequence[Run]) -> None:
        """Records the runs as over time, and ends the process, whose main thread may be in a long compiled call."""
        message = f"no predictions within {self.context.cpu_limit:g} CPU seconds: a larger run.cpu_limit makes it again"
        records = [result.failure(self.context, run, LATE, message) for run in runs]
        try:
            for record in records:
                self._record(record, {})
            count = len(self.context.plan.runs) - len(self.records)
            more = f"; runs left: {count}, and the same command trains more" if count else ""
            text, code = f"{divergence(records)}{more}", DivergedError.exit_code
            release(self.context.plan.results, [record.id for record in records])
        except GpbenchError as error:
            text, code = str(error), error.exit_code
        log.error(text)
        os._exit(code)

    def _train(self, runs: Sequence[Run], checkpoint: Checkpoint) -> list[_Trained]:
        """Each of these runs, trained together, with its record, and its trace, predictions and state to keep."""
        context = self.context
        group, prepared = load(context, runs)
        if "keep" in context.plan.extras:
            result.check_keep(context.method, group)
        total, recorded = len(context.plan.runs), len(self.records)
        members = f"{label(group.members)} ({recorded}/{total} done)"
        later = max(total - recorded, len(runs)) / len(runs) - 1
        names = {key: context.facts[key] for key in ("dataset", "method", "setting", "protocol")}
        title = "  ".join(names.values())
        sections = leaves({name: context.plan.cfg[name] for name in ("method", "protocol")})
        settings = {**dict(sections), **names, "seed": context.seed}
        for run in (run for run in runs if run.id not in self.records):
            own = {**settings, "split": run.split, "output": run.output_name}
            self.trackers.begin(run.id, f"{title}  {label([run.member])}", own, Path(context.plan.results))
        self.progress.begin(title, context.method.steps, members, later)
        try:
            late = partial(self._end_late, runs)
            with one_line_if_users_code(context.plan.cfg, group), enforced(context.cpu_limit, late):
                outcome = fit(
                    context.programs,
                    group,
                    cadence=context.cadence,
                    score=partial(result.scores, prepared),
                    checkpoint=checkpoint,
                    progress=self.progress,
                    follow=partial(self.trackers.update, [run.id for run in runs]),
                    stop=self.stop,
                )
                group, before = recalibrated(context.programs, group, outcome)
        finally:
            self.progress.end()
        if group.stream and context.dataset.file:
            context.dataset.file.check()
        results, extras = [], {*context.plan.extras}
        for i, run in enumerate(runs):
            trace = {name: v if v.ndim == 1 else v[:, i] for name, v in outcome.trace.items()}
            state = context.state(outcome, i) if extras & {"keep", "save"} else None
            if "keep" in extras:
                trace |= result.kept_arrays(
                    context.method, state, prepared[i], context.precision, key=group.step_keys[i]
                )
            record = result.record(context, run, outcome, i, prepared[i], group, before)
            keeps = not record.diverged and context.keeps_predictions(len(prepared[i].y_test))
            predictions = result.predictions_by_row(prepared[i], outcome.predictions, i) if keeps else None
            saved = arrays_of(state) if "save" in extras else None
            results.append((run, record, {"trace": trace, "predictions": predictions, "state": saved}))
        return results
