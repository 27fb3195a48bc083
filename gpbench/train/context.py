"""Context that all runs of a job share, made once from its plan."""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from gpbench import data as data_layer
from gpbench import limits, own_metrics, runtime, targets
from gpbench.config.build import build_method
from gpbench.config.compose import folders
from gpbench.core.kernels import Spec as KernelSpec
from gpbench.core.likelihoods import Spec as LikelihoodSpec
from gpbench.data.dataset import Dataset
from gpbench.errors import ConfigError, DataError, MemoryShortage, either
from gpbench.methods.base import Method
from gpbench.methods.protocols import State
from gpbench.own_metrics import OwnMetrics
from gpbench.records import environment, identity
from gpbench.records.arrays import MOST_ROWS
from gpbench.records.plan import Run, RunPlan
from gpbench.train.budget import Budget
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.devices import Devices
from gpbench.train.group import Fit, Group
from gpbench.train.loop import Cadence
from gpbench.train.programs import Programs


@dataclass(frozen=True)
class Context:
    """A plan with its method and compiled programs, its data, and what training and records need of the configuration.

    `inputs`, `targets`: names of scalers.  `together`, `stream`, `predictions`, `budget` as in conf/config.yaml.
    `facts` are in every record of the job.  Nothing behind it reads the configuration.
    """

    plan: RunPlan
    programs: Programs
    dataset: Dataset
    card: Mapping[str, Any]
    inputs: str
    targets: str
    precision: str
    seed: int
    cadence: Cadence
    together: int | str
    stream: bool | str
    predictions: bool | str
    budget: Budget | None
    facts: Mapping[str, Any]
    own_metrics: OwnMetrics

    @classmethod
    def create(cls, plan: RunPlan) -> "Context":
        """Loads the data and finds the devices.

        Raises ConfigError for a task that the method cannot have, for devices that are not there, and for several
        runs with a budget; DataError for other data than those of the plan; what loading raises.
        """
        cfg = plan.cfg
        card, protocol, run = cfg["dataset"], cfg["protocol"], cfg["run"]
        plan.check_budget()
        method = build_method(cfg["method"])
        if card["task"] not in method.tasks:
            tasks = either(sorted(method.tasks))
            raise ConfigError(
                f"method {method.name} is for {tasks} data, and {card['name']} is {card['task']}:"
                " `gpbench ls datasets` and `gpbench ls methods` show what fits together"
            )
        if (dataset := data_layer.configured(cfg)).checksum != plan.data_checksum:
            raise DataError(f"{card['name']}: its data were changed since this command began: run it again")
        devices, precision = Devices(run["devices"]), protocol["precision"]
        facts = {
            "dataset": card["name"],
            "method": method.name,
            "setting": setting_text(method, cfg),
            "protocol": protocol["name"],
            "seed": cfg["seed"],
            "data_checksum": plan.data_checksum,
            "kept": "keep" in plan.extras,
            **({"saved": True} if "save" in plan.extras else {}),
            "preset": run["preset"],
            **({"budget": run["budget"]} if run.get("budget") else {}),
            **environment.facts(device=runtime.device_name(), precision=precision),
            **devices.facts(),
        }
        return cls(
            plan,
            Programs(method, devices),
            dataset,
            card,
            protocol["inputs"],
            protocol["targets"],
            precision,
            cfg["seed"],
            Cadence(run["trace_every"], run["checkpoint_every"]),
            run["together"],
            run.get("stream", "auto"),
            run["predictions"],
            Budget(seconds) if (seconds := run.get("budget")) else None,
            facts,
            own_metrics.load(folders([Path(folder) for folder in cfg["config_dirs"] if targets.is_given(folder)])),
        )

    @property
    def title(self) -> str:
        """The job in a line of progress: data set, method, setting and protocol."""
        return "  ".join(self.facts[key] for key in ("dataset", "method", "setting", "protocol"))

    @property
    def method(self) -> Method:
        """The method, as configured."""
        return self.programs.method

    @property
    def devices(self) -> Devices:
        """Devices that hold the rows."""
        return self.programs.devices

    def state(self, fit: Fit, i: int) -> State:
        """The state of the i-th run of a group, on one device.  All processes must ask."""
        return jax.device_put(jax.tree.map(lambda leaf: leaf[i], self.devices.on_host(fit.state)))

    def keeps_predictions(self, rows: int) -> bool:
        """Decide whether the predictions of this number of test rows are kept beside the record."""
        return rows <= MOST_ROWS if self.predictions == "auto" else bool(self.predictions)

    def streams(self, rows: int, size: int) -> bool:
        """Decide whether the training rows stay on the host (`gpbench.train.stream`).  Raises ConfigError:
        `run.stream=true`, and a step takes all rows.
        """
        batch = self.method.batch_size
        minibatches = batch is not None and batch < rows
        if self.stream is True and not minibatches:
            raise ConfigError(
                f"run.stream=true needs minibatches, and a step of {self.method.name} takes all {rows:,} rows: set"
                " method.batch_size where the method has it, or run.stream=auto"
            )
        return minibatches and (size > limits.DATA if self.stream == "auto" else bool(self.stream))

    def checkpoint(self, group: Sequence[Run], *, again: bool) -> Checkpoint:
        """The checkpoint of a group; `run.again` never resumes what was stopped without it."""
        words = [run.id for run in group] + ["again"] * again
        name = hashlib.sha256("/".join(words).encode()).hexdigest()[:16]
        return Checkpoint(Path(self.plan.results) / "checkpoints", name)


def setting_text(method: Method, cfg: Mapping[str, Any]) -> str:
    """The method's own setting (`m=15%`), then whatever else differs from the defaults: `m=15%, update=outer`.

    What a method reads of the protocol is among its own keys; what it does not read is no part of the setting.
    """
    texts = [method.label] if method.label else []
    for key, value in cfg["changes"].items():
        if key.startswith("protocol.") and key.split(".")[1] not in identity.PROTOCOL:
            continue
        name = key.partition(".")[2].removeprefix("splits.")
        value = "null" if value is None else value
        field = name.partition(".")[0]
        spec = getattr(method, field, None) if key.startswith("method.") else None
        text = f"{field}={spec}" if isinstance(spec, KernelSpec | LikelihoodSpec) else f"{name}={value}"
        # sets.NAME is how many splits there are, which changes none of them
        if name not in method.label_fields and not name.startswith("sets.") and text not in texts:
            texts.append(text)
    texts += [f"{key}={value}" for key, value in identity.timing_keys(cfg["run"]).items() if value is not None]
    return ", ".join(texts)


@contextlib.contextmanager
def one_line_if_out_of_memory(group: Group) -> Iterator[None]:
    """Raises MemoryShortage for XLA's error of a device without enough memory for this group."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        fewer = "" if group.size == 1 else f"run.together={group.size // 2}, "
        raise MemoryShortage(
            f"out of memory on {group.size} x {group.X.shape[1]} rows: try {fewer}fewer inducing points"
            " or features, or a smaller batch"
        ) from error
