"""Seconds until each verb that needs no JAX has answered, beside Python's own start."""

import argparse
import subprocess
import sys
import time

from benches._results import measured

VERBS = (["--help"], ["ls", "datasets"], ["ls", "runs"], ["data", "info", "pima"], ["table"])


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this bench to the command line."""
    parser.add_argument("--rounds", type=int, default=5)


def main(options: argparse.Namespace) -> None:
    bare = best([sys.executable, "-c", ""], options.rounds)
    print(f"python -c ''            {bare:.3f} s")
    for verb in VERBS:
        seconds = best([sys.executable, "-m", "gpbench", *verb], options.rounds)
        measured(f"start {' '.join(verb)}", seconds)
        print(f"gpbench {' '.join(verb):<15} {seconds:.3f} s  {seconds / bare:5.1f} times Python's start")


def best(command: list[str], rounds: int) -> float:
    """The shortest of `rounds` runs, in seconds."""

    def once() -> float:
        started = time.perf_counter()
        subprocess.run(command, capture_output=True)
        return time.perf_counter() - started

    return min(once() for _ in range(rounds))
