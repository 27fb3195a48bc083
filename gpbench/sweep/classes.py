"""The check of users' classes and metrics before a sweep or dry run, in another process: this one has no JAX."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench import custom, own_metrics, registry, targets
from gpbench.config import compose, declared
from gpbench.errors import ConfigError, GpbenchError
from gpbench.experiments.plan import job_note
from gpbench.records.plan import RunPlan


def check_classes(
    jobs: Sequence[Sequence[str]], plans: Sequence[RunPlan | GpbenchError], config_dirs: Sequence[Path]
) -> None:
    """Check what plans use from outside gpbench: methods, kernels, likelihoods and optimisers, and the user's metrics.
    Raises ConfigError: as `gpbench.config.build.check_class` and `gpbench.own_metrics.load`.
    """
    words_of = {
        json.dumps([plan.cfg["method"], plan.cfg["dataset"]]): words
        for words, plan in zip(jobs, plans, strict=True)
        if isinstance(plan, RunPlan) and _is_custom(plan.cfg["method"])
    }
    code_dirs = [folder for folder in config_dirs if targets.is_given(folder)]
    folders = compose.folders(code_dirs)
    if not words_of and not own_metrics.declarations(folders):
        return
    request = json.dumps([sys.path, list(words_of), list(map(str, folders)), list(map(str, code_dirs))])
    command = [sys.executable, "-m", __name__]
    process = subprocess.run(command, input=request, capture_output=True, text=True)
    if process.returncode == ConfigError.exit_code and process.stdout:
        message, number = json.loads(process.stdout)
        raise ConfigError(message + ("" if number is None else job_note(list(words_of.values())[number], jobs)))


def _is_custom(method: Mapping[str, Any]) -> bool:
    """True if a section names a class from outside gpbench."""
    if method.get("_target_") not in declared.classes():
        return True
    return any(custom.custom_paths(kind, method[kind]) for kind in registry.KINDS.keys() & method.keys())


def main() -> int:
    """Checks the sections that stdin has; prints the message of the first error.  Returns the exit code."""
    path, sections, folders, config_dirs = json.load(sys.stdin)
    sys.path[:] = path
    targets.add_folders(config_dirs)
    number = None
    try:
        with contextlib.redirect_stdout(sys.stderr):
            if sections:
                from gpbench import runtime

                runtime.configure(device="cpu")
                runtime.import_jax()
                from gpbench.config.build import check_class
            for index, section in enumerate(sections):
                number = index
                check_class(*json.loads(section))
            number = None
            own_metrics.load([Path(folder) for folder in folders])
    except ConfigError as error:
        print(json.dumps([str(error), number]))
        return ConfigError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
