"""Seconds from the start of a process to a stated accuracy: ours, GPyTorch's and GPJax's, on the same rows.

Ours is `gpbench run method=svi_natural` as a user types it.  All have the same training rows, number of inducing points
and batch size; GPyTorch has natural gradients and float32 as ours, GPJax Adam and float64.  Processes take turns,
`--rounds` times.  Seconds leave out the scoring of test rows in between, which only this comparison needs.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import numpy as np
from benches import _machine
from benches._results import count, measured

HERE = Path(__file__).resolve().parent
WHO = ("ours", "gpytorch", "gpjax")
PARTS = ("start", "data", "init", "search", "compile", "train", "evaluate", "end")
"""Of a process; "end" is what follows its training and scoring, with the closing of the interpreter."""


@dataclass(frozen=True)
class Problem:
    """A data set with the accuracy to reach: standardised RMSE, or the mean negative log probability of labels."""

    target: float
    binary: bool = False
    inducing: int = 512
    batch: int = 1024
    steps: int = 700
    words: tuple[str, ...] = ()
    """Further words of our command line."""


SETS = {
    "kin40k": Problem(0.1924),
    "protein_yang": Problem(0.64),
    "airline": Problem(0.65, binary=True),
    # from the median along each of 784 inputs all covariances are 0, and training stands still
    "mnist_odd_even": Problem(0.1, binary=True, words=("method.lengthscale_start=median",)),
}


@dataclass
class Timing:
    """A finished process: seconds by part, CPU seconds, and quality along the seconds since its start."""

    seconds: dict[str, float]
    cpu: float
    points: list[tuple[float, float]] = field(default_factory=list)

    @classmethod
    def of(cls, wall: float, seconds: dict[str, float], cpu: float, points: list[list[float]]) -> "Timing":
        """With the parts but "end", and points at (seconds of training, quality)."""
        before = sum(seconds.get(part, 0.0) for part in PARTS[:5])
        end = wall - sum(seconds.values())
        return cls({**seconds, "end": end}, cpu, [(before + trained, quality) for trained, quality in points])

    def until(self, target: float) -> float:
        """Seconds at the first point as good as the target; infinite where none is."""
        return next((second for second, quality in self.points if quality <= target), float("inf"))


def ours(name: str, problem: Problem, folder: Path, data_seconds: float, scale: float) -> Timing:
    """`gpbench run` in a process of its own.

    Its data part is timed here, on the same work; `scale` is that of the targets.
    """
    from gpbench.records.store import Store

    results = Path(tempfile.mkdtemp(dir=folder))
    sizes = [
        f"method.inducing={problem.inducing}",
        f"method.batch_size={problem.batch}",
        f"method.steps={problem.steps}",
    ]
    words = ["method=svi_natural", "method.features=values", "protocol.precision=float32", f"run.results={results}"]
    every = f"run.trace_every={_every(problem.steps)}"
    command = [sys.executable, "-m", "gpbench", "run", f"dataset={name}", *words, *sizes, every]
    begun = time.time()
    wall, cpu, _ = _machine.timed([*command, "run.predictions=false", *problem.words])
    store = Store(results)
    record = store.last()
    trace, spent = store.trace(record.id), dict(record.seconds or {})
    qualities = np.ravel(trace["nll" if problem.binary else "rmse"]) / scale
    start = datetime.fromisoformat(record.created).timestamp() - begun  # a record is dated before its data are read
    points = [[float(a), float(b)] for a, b in zip(trace["seconds"], qualities)]
    return Timing.of(wall, {"start": start, "data": data_seconds, **spent}, cpu, points)


def peer(script: str, python: str, problem: Problem, arrays: Path) -> Timing | None:
    """A peer's process; None where it is not installed or fails, whose last line of stderr is printed."""
    settings = {**vars(problem), "every": _every(problem.steps), "arrays": str(arrays)}
    path = arrays.with_suffix(".json")
    path.write_text(json.dumps({**settings, "begun": time.time()}))
    command = [python, str(HERE / f"_peer_{script}.py"), str(path)]
    wall, cpu, process = _machine.timed(command, may_fail=True, PYTHONPATH=str(HERE))
    if process.returncode:
        print(f"{script}: {(process.stderr.strip().splitlines() or ['it failed'])[-1]}", file=sys.stderr)
        return None
    answer = json.loads(process.stdout.strip().splitlines()[-1])
    return Timing.of(wall, answer["seconds"], cpu, answer["points"])


def _every(steps: int) -> int:
    return max(1, steps // 35)


def draw(name: str, target: float, timings: dict[str, list[Timing]], folder: Path) -> Path:
    """The picture of quality against seconds, a line for each process."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    for colour, (who, runs) in enumerate(timings.items()):
        for k, run in enumerate(runs):
            axes.plot(*zip(*run.points), color=f"C{colour}", label=who if k == 0 else None, linewidth=1.2)
    axes.axhline(target, color="grey", linewidth=0.8, linestyle=":")
    axes.set(xlabel="seconds since the start of the process", title=name, xlim=(0, None))
    axes.set_ylabel("negative log probability" if SETS[name].binary else "RMSE, standardised")
    axes.legend(frameon=False)
    path = folder / f"accuracy_{name}.png"
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path


def program(text: str) -> str:
    """A program on the command line, or argparse's error."""
    if not shutil.which(text):
        raise argparse.ArgumentTypeError(f"{text}: no program of this name")
    return text


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this bench to the command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--rounds", type=count, default=1)
    parser.add_argument("--target", type=float, help="accuracy to reach; default: the one of the set")
    parser.add_argument("--steps", type=count, help="of every process; default: 700")
    parser.add_argument("--inducing", type=count, help="inducing points; default: 512")
    parser.add_argument("--batch", type=count, help="rows of a step; default: 1024")
    parser.add_argument("--only", nargs="+", choices=WHO, default=WHO)
    parser.add_argument(
        "--gpytorch", type=program, default=sys.executable, metavar="PYTHON", help="a Python with GPyTorch"
    )
    parser.add_argument("--gpjax", type=program, default=sys.executable, metavar="PYTHON", help="a Python with GPJax")
    parser.add_argument("--pictures", type=Path, default=HERE.parents[1] / "build" / "bench")


def main(options: argparse.Namespace) -> None:
    import gpbench

    options.pictures.mkdir(parents=True, exist_ok=True)
    for name in options.sets:
        given = {
            key: value
            for key in ("target", "steps", "inducing", "batch")
            if (value := getattr(options, key)) is not None
        }
        problem, timings = replace(SETS[name], **given), {}
        gpbench.load(name).split(0)  # prepared in the store
        started = time.perf_counter()
        split = gpbench.load(name).split(0)
        data_seconds = time.perf_counter() - started
        with tempfile.TemporaryDirectory() as folder:
            arrays = Path(folder) / "problem.npz"
            np.savez(arrays, X=split.X, y=split.y, X_test=split.X_test, y_test=split.y_test)
            for _ in range(options.rounds):
                for who in options.only:
                    _machine.wait_until_idle(0.0)
                    python = getattr(options, who, None)
                    run = (
                        peer(who, python, problem, arrays)
                        if python
                        else ours(name, problem, Path(folder), data_seconds, split.y_std)
                    )
                    if run:
                        timings.setdefault(who, []).append(run)
        print(f"{name}: to {'NLL' if problem.binary else 'RMSE'} {problem.target:g}; {len(split.X):,} training rows")
        print("           seconds     CPU    best " + " ".join(f"{part:>8s}" for part in PARTS))
        for who, runs in timings.items():
            measured(f"accuracy {name} {who} CPU of {problem.steps} steps", min(run.cpu for run in runs), "float32")
            if (soonest := min(run.until(problem.target) for run in runs)) < float("inf"):
                measured(f"accuracy {name} {who} to {problem.target:g}", soonest, "float32")
            for run in runs:
                reached = run.until(problem.target)
                best = min(quality for _, quality in run.points)
                parts = " ".join(f"{run.seconds.get(part, 0.0):8.1f}" for part in PARTS)
                print(f"{who:<9} {reached:8.1f} {run.cpu:7.1f} {best:7.4f} {parts}", flush=True)
        print(f"picture: {draw(name, problem.target, timings, options.pictures)}")
