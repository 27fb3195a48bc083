"""The check of users' classes before a sweep or a dry run, in a process of its own: this one stays without JAX."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterable

from gpbench.config import declared
from gpbench.errors import ConfigError, GpbenchError
from gpbench.records.plan import RunPlan


def check_classes(planned: Iterable[RunPlan | GpbenchError]) -> None:
    """Check the methods of plans that are classes from outside gpbench against their signatures and declarations.

    Raises:
        ConfigError: as `gpbench.config.build.check_class`.
    """
    plans = [plan for plan in planned if isinstance(plan, RunPlan)]
    nodes = [[plan.cfg["method"], plan.cfg["dataset"]] for plan in plans]
    distinct = {json.dumps(node) for node in nodes if node[0].get("_target_") not in declared.classes()}
    if not distinct:
        return
    folders = {folder for plan in plans for folder in plan.cfg["config_dirs"]}
    request = json.dumps([sys.path, sorted(folders), sorted(distinct)])
    command = [sys.executable, "-m", __name__]
    process = subprocess.run(command, input=request, capture_output=True, text=True)
    if process.returncode == ConfigError.exit_code:
        raise ConfigError(process.stdout)


def main() -> int:
    """Checks the sections that stdin has; prints the message of the first error.  Returns the exit code."""
    path, folders, sections = json.load(sys.stdin)
    sys.path[:] = path
    try:
        with contextlib.redirect_stdout(sys.stderr):
            from gpbench import runtime, targets

            targets.add_folders(folders)
            runtime.configure(device="cpu")
            from gpbench.config.build import check_class

            for section in sections:
                check_class(*json.loads(section))
    except ConfigError as error:
        print(error, end="")
        return ConfigError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
