"""`gpbench run`: one job in this process, or with -m one job after another in processes of their own."""

import argparse
import contextlib
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpbench.errors import DivergedError, PeerError
from gpbench.records.store import Store
from gpbench.sweep.outcome import divergence

_EPILOG = """\
main keys (gpbench run --cfg shows all, with their values):
  dataset=NAME method=NAME protocol=NAME   `gpbench ls datasets`, `ls methods`, `ls protocols` list them
  split=0 | split=[0,3] | split=all        which train/test splits
  seed=0                                   randomness of the method
  method.KEY=VALUE protocol.KEY=VALUE      any setting of the method and the protocol
  run.time_limit=SECONDS                   stop at a checkpoint then (exit code 75); the same command goes on from there
  run.jobs=K                               processes of a sweep at a time
  hydra/launcher=slurm                     jobs of a sweep on a Slurm cluster (docs/sweeps.md)
  run.again=true                           train even what is recorded
  run.devices=K run.processes=P            deal the rows out over devices, of one process or of several
  run.results=DIR run.device=cpu|gpu       where records go; where to compute

examples:
  gpbench run                                          sep on wdbc, split 0
  gpbench run dataset=pima method.inducing=0.25 split=all
  gpbench run -m dataset=pima,wdbc split=0,1,2 run.jobs=2
  gpbench run --config-dir mine dataset=mydata method=mymethod
"""


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "run",
        help="train and score methods on data sets; sweeps with -m",
        description="Train a method on splits of a data set, score it on the test rows, and record the result.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="what differs from the defaults")
    parser.add_argument("-m", "--multirun", action="store_true", help="sweep: one job for each combination of a,b,c")
    parser.add_argument("--config-dir", action="append", default=[], type=Path, metavar="DIR",
                        help="your own dataset/, method/ and protocol/ files, and the modules they name")  # fmt: skip
    parser.add_argument("--cfg", action="store_true", help="print the resolved configuration and do nothing")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the verb; the exit code.  Raises ConfigError, DivergedError, Stopped, SweepError."""
    from gpbench.train.stop import StopRequest

    folders = [folder.expanduser().resolve() for folder in args.config_dir]
    sys.path[:0] = map(str, folders)
    if args.multirun and not args.cfg:
        from gpbench.sweep.launcher import sweep

        return sweep(args.overrides, folders)

    from gpbench.config.compose import compose
    from gpbench.sweep import processes

    cfg, defaults = compose(args.overrides, folders)
    if args.cfg:
        import yaml

        print(yaml.safe_dump(cfg, sort_keys=False, allow_unicode=True), end="")
        return 0
    if processes.wanted(cfg["run"]):
        with _claimed(cfg):
            return processes.run(args, cfg["run"])
    with StopRequest(cfg["run"]["time_limit"]) as stop:
        store = _Watched(cfg["run"]["results"])
        records = _train(cfg, defaults, store, stop)
    if not records:  # another process of this run speaks for it
        return 0
    already = sum(record["id"] not in store.written for record in records)
    if args.json:
        print(json.dumps({"records": records, "already": already}))
    else:
        report(records, already, Path(cfg["run"]["results"]))
    if told := divergence(records):
        raise DivergedError(told)
    return 0


def report(records: list[dict], already: int, results: Path) -> None:
    """Print what came out: each metric's mean ± standard error over the splits, the seconds, where the records lie."""
    first = records[0]
    done = [record for record in records if record["status"] == "done"]
    print(f"{first['dataset']}  {first['method']}  {first['setting']}  {first['protocol']}".rstrip())
    rows = []
    for metric in done[0]["metrics"] if done else ():
        rows.append((metric, _mean([record["metrics"][metric] for record in done])))
    rows += [(f"{part} s", f"{sum(r['seconds'].get(part) or 0 for r in records):.2f}") for part in first["seconds"]]
    outputs = len({record.get("output") for record in records})
    count = f"{len(done)}" + (f" of {len(records)}" if len(done) < len(records) else "")
    rows.append(("splits", count) if outputs == 1 else ("runs", f"{count}, of {outputs} outputs"))
    _print(rows)
    print(f"records in {results / 'runs'}" + (f"; {already} of {len(records)} were there already" if already else ""))


def _train(cfg: dict, defaults: dict, store: Store, stop: Any) -> list[dict]:
    """Everything that needs JAX: settled first, imported second."""
    from gpbench import runtime

    run = cfg["run"]
    told = runtime.peers()
    runtime.configure(
        device=run["device"],
        memory_fraction=run["memory_fraction"],
        devices=(run["devices"] or 1) // (told[2] if told else 1),
        cores=run["cores"],
    )
    joined = told or run["processes"] == "cluster"
    if joined:
        runtime.join()
    if run["device"] == "gpu":
        runtime.require_gpu()

    from gpbench.config.compose import check_fields

    check_fields(cfg["method"])

    import jax

    from gpbench.train import progress
    from gpbench.train.job import run_job

    leads = jax.process_index() == 0
    shown = progress.make(run["progress"] and leads)
    try:
        # What joined others is claimed by the process that started them; a cluster's processes start at once.
        with _quiet(jax.process_count() > 1), contextlib.nullcontext() if joined else _claimed(cfg):
            records = run_job(cfg, defaults, store=store, progress=shown, stop=stop)
    except jax.errors.JaxRuntimeError as error:
        if jax.process_count() == 1:
            raise
        # What else fails in a run of several processes fails in each of them, and in some of them first.
        why = str(error).partition("\n")[0][:200]
        raise PeerError(f"the processes of this run lost each other ({why}); the same command goes on from the last"
                        " checkpoint") from error  # fmt: skip
    return records if leads else []


@contextlib.contextmanager
def _claimed(cfg: dict) -> Iterator[None]:
    """Holds the runs that lack a record, so that no other process trains them; ClaimedError where one does."""
    from gpbench.experiments import plan
    from gpbench.records.claims import claimed

    facts = plan.facts(cfg)
    with claimed(facts["results"], plan.lacking(facts)):
        yield


@contextlib.contextmanager
def _quiet(wanted: bool) -> Iterator[None]:
    """Keeps what libraries in C print (Gloo: who it is connected to) out of our output; it goes to stderr."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


class _Watched(Store):
    """A store that remembers what this process wrote."""

    def __init__(self, results: Path | str):
        super().__init__(results)
        self.written: set[str] = set()

    def write(self, record: Mapping[str, Any], *args: Any, **kwargs: Any) -> Path:
        self.written.add(record["id"])
        return super().write(record, *args, **kwargs)


def _mean(values: list[float | None]) -> str:
    """Mean ± standard error; what is not finite was recorded as None."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values) or not numbers:
        return "not finite"
    mean = math.fsum(numbers) / len(numbers)
    if len(numbers) == 1:
        return f"{mean:.4f}"
    variance = math.fsum((value - mean) ** 2 for value in numbers) / (len(numbers) - 1)
    return f"{mean:.4f} ± {math.sqrt(variance / len(numbers)):.4f}"


def _print(rows: list[tuple[str, str]]) -> None:
    if not sys.stdout.isatty():
        for name, value in rows:
            print(f"  {name:<12}{value}")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
