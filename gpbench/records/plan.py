"""The plan of a job: the runs of a configuration with their ids, and those of them that are recorded."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from gpbench.config.values import Config
from gpbench.records import identity
from gpbench.records.record import Record

if TYPE_CHECKING:
    from gpbench.data.splits import Member


GAP = "generalisation_gap"  # the diagnostic that `run.gap` adds

_EXTRAS: Mapping[str, Callable[[Record], Any]] = {
    "keep": lambda record: record.kept,
    "save": lambda record: record.saved,
    "gap": lambda record: GAP in (record.diagnostics or {}),
}
"""Whether a record has what a key of the `run` section asks for: arrays of pictures, trained state, generalisation gap.
"""

Loaded = dict[str, tuple[str, int, int | None]]
"""Checksums, rows and fewest training rows of data without a checksum that plans of one command have loaded."""


@runtime_checkable
class Records(Protocol):
    """Records that are looked up by id: a `Store`, or a dict."""

    def get(self, id: str, /) -> Any: ...


@dataclass(frozen=True)
class Run:
    """One run: a split and, of a data set with several outputs, one of them by number and name."""

    id: str
    cell: str
    split: int
    output: int | None = None
    output_name: str = ""

    @property
    def member(self) -> "Member":
        """The run as the data layer names it."""
        from gpbench.data.splits import Member

        return Member(self.split, self.output)


@dataclass(frozen=True)
class RunPlan:
    """The runs of a resolved configuration `cfg`, in the order of its splits and outputs.  Plain data."""

    cfg: Config
    data_checksum: str
    runs: Sequence[Run]

    @classmethod
    def from_config(cls, cfg: Config, loaded: Loaded | None = None) -> "RunPlan":
        """The plan of a configuration.  Data are loaded only where the card has no checksum."""
        from gpbench.config import cards
        from gpbench.data import splits

        card = cards.resolved(cfg["dataset"])
        checksum, rows, fewest = card.get("checksum"), card.get("rows"), None
        if not checksum:
            checksum, rows, fewest = _checksum_and_rows(cfg, {} if loaded is None else loaded)
        if fewest := fewest or (splits.sizes({**card, "rows": rows}) or (None,))[0]:
            kept_out = splits.recalibration_rows(cfg["protocol"].get("recalibrate"), card["task"], fewest)
            cfg = within_rows(cfg, fewest - kept_out)
        shared = identity.identify(cfg, checksum)
        trained = splits.members(card, cfg["split"], cfg["output"])
        by_output = {member.output: member for member in trained}  # splits share the cell
        cells = {output: identity.cell_id(**shared, **member.cell) for output, member in by_output.items()}
        seed, names = cfg["seed"], {output: splits.name_of_output(card, output) for output in cells}
        id_of = lambda member: identity.run_id(**shared, **member.identity, seed=seed)
        runs = [Run(id_of(member), cells[member.output], *member, names[member.output]) for member in trained]
        return cls(cfg, checksum, tuple(runs))

    @property
    def results(self) -> str:
        """The results folder."""
        return str(self.cfg["run"]["results"])

    @property
    def again(self) -> bool:
        """True if recorded runs are trained again."""
        return bool(self.cfg["run"]["again"])

    @property
    def extras(self) -> list[str]:
        """The keys of the `run` section that ask for more than numbers: of `keep`, `save` and `gap`."""
        return [name for name in _EXTRAS if self.cfg["run"].get(name)]

    def recorded(self, records: Records) -> dict[str, Record]:
        """The records that stand for runs of this plan, by id, in its order: of this schema, and with all it needs."""
        candidates = {} if self.again else {run.id: records.get(run.id) for run in self.runs}
        return {id: record for id, record in candidates.items() if record and self._accepts(record)}

    def missing(self, records: Records) -> list[Run]:
        """The runs without a record that counts."""
        recorded = self.recorded(records)
        return [run for run in self.runs if run.id not in recorded]

    def with_run(self, **values: Any) -> "RunPlan":
        """The plan with other values in the `run` section, which changes no run that is not timed."""
        return replace(self, cfg=cast(Config, {**self.cfg, "run": {**self.cfg["run"], **values}}))

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps({"cfg": self.cfg, "data_checksum": self.data_checksum, "runs": list(map(asdict, self.runs))})

    @classmethod
    def from_json(cls, text: str | bytes) -> "RunPlan":
        """The plan that `to_json` wrote.  Raises ValueError, KeyError or TypeError for other texts."""
        fields = json.loads(text)
        return cls(fields["cfg"], fields["data_checksum"], tuple(Run(**run) for run in fields["runs"]))

    def with_extras_of(self, records: Records) -> "RunPlan":
        """The plan that also asks for what some of its runs have in these records: a run made again keeps it."""
        known = [record for run in self.runs if (record := records.get(run.id))]
        return self.with_run(**{name: True for name, extra in _EXTRAS.items() if any(map(extra, known))})

    def _accepts(self, record: Record) -> bool:
        if record.status == "failed":
            return (self.cfg["run"].get("cpu_limit") or math.inf) <= (record.cpu_limit or 0.0)
        return record.schema == identity.SCHEMA and all(
            _EXTRAS[name](record) or (name == "gap" and record.diverged) for name in self.extras
        )


def within_rows(cfg: Config, rows: int) -> Config:
    """A configuration whose default numbers of rows, such as `inducing`, are at most those that train.  The new number
    is part of the run's identity and of its setting, as if the user had set it.  A number that the user or an
    experiment did set stays as it is: the method refuses it where it is too large."""
    from gpbench.config import declared

    method, explicit = cfg["method"], set(cfg.get("explicit", ["method"]))  # records of before have no such list
    large = [key for key in declared.beyond(method, rows) if not explicit & {"method", f"method.{key}"}]
    changes = {**cfg["changes"], **{f"method.{key}": rows for key in large}} if large else cfg["changes"]
    return {**cfg, "method": {**method, **dict.fromkeys(large, rows)}, "changes": changes}


def _checksum_and_rows(cfg: Config, loaded: Loaded) -> tuple[str, int, int | None]:
    """The checksum, the rows and the fewest training rows of data without a checksum, loaded for the first job."""
    from gpbench.data import splits
    from gpbench.data.sources import configured

    key = json.dumps([cfg[section] for section in ("dataset", "data", "config_dirs")])
    if key not in loaded:
        dataset = configured(cfg)
        loaded[key] = dataset.checksum, len(dataset.y), splits.fewest(cfg["dataset"], dataset)
    return loaded[key]
