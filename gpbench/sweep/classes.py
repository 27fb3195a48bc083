"""The check of users' classes and metrics before a sweep or dry run, in another process: this one has no JAX."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench import own_metrics, plugins, registry, targets
from gpbench.config import declared
from gpbench.errors import ConfigError, GpbenchError
from gpbench.experiments.plan import job_note
from gpbench.records.plan import RunPlan


def check_classes(
    jobs: Sequence[Sequence[str]], plans: Sequence[RunPlan | GpbenchError], config_dirs: Sequence[Path]
) -> None:
    """Checks what plans use from outside gpbench: methods, kernels, likelihoods, optimisers, and the user's metrics."""
    words_of = {
        json.dumps([plan.cfg["method"], plan.cfg["dataset"]]): words
        for words, plan in zip(jobs, plans, strict=True)
        if isinstance(plan, RunPlan) and _is_custom(plan.cfg["method"])
    }
    code_dirs = [folder for folder in config_dirs if targets.is_given(folder)]
    folders = plugins.folders(code_dirs)
    if not words_of and not own_metrics.declarations(folders):
        return
    request = json.dumps([sys.path, list(words_of), list(map(str, folders)), list(map(str, code_dirs))])
    process = subprocess.run([sys.executable, "-m", __name__], input=request, capture_output=True, text=True)
    if process.returncode == ConfigError.exit_code and process.stdout:
        message, section = json.loads(process.stdout)
        raise ConfigError(message + (job_note(words_of[section], jobs) if section else ""))


def _is_custom(method: Mapping[str, Any]) -> bool:
    """True if a section names a class from outside gpbench."""
    if method.get("_target_") not in declared.classes():
        return True
    return any(registry.custom_paths(kind, method[kind]) for kind in registry.KINDS.keys() & method.keys())


def main() -> int:
    """Checks the sections that stdin has, and prints the message of the first error; the exit code."""
    sys.path[:], sections, folders, config_dirs = json.load(sys.stdin)
    targets.add_folders(config_dirs)
    section = None
    try:
        with contextlib.redirect_stdout(sys.stderr):
            if sections:
                from gpbench import runtime

                runtime.configure(device="cpu")
                runtime.import_jax()
                from gpbench.config.build import check_class
            for section in sections:
                check_class(*json.loads(section))
            section = None
            own_metrics.load([Path(folder) for folder in folders])
    except ConfigError as error:
        print(json.dumps([str(error), section]))
        return ConfigError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
