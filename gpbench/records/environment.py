"""Environment of a run: versions, installed packages, commit, host.  Imports neither JAX nor NumPy."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpbench.core.memory import proc_field
from gpbench.records import packages
from gpbench.version import __version__

_PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "equinox", "optax", "hydra-core", "scikit-learn")

_ROOT = Path(__file__).resolve().parents[2]


def facts(*, device: str | None = None, precision: str | None = None) -> dict[str, Any]:
    """The facts that a record has beside its numbers, as a run starts: code may be edited while it runs."""
    return {
        "device": device,
        "precision": precision,
        "versions": versions(),
        "packages": packages.checksum(packages.installed()),
        **commit(),
        "host": host(),
        "created": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }


def versions() -> dict[str, str | None]:
    """Versions of Python, of gpbench and of the packages that can change a number; None if not installed."""
    known = packages.versions()
    return {"python": platform.python_version(), "gpbench": __version__} | {name: known.get(name) for name in _PACKAGES}


def commit() -> dict[str, str | bool | None]:
    """The `commit` of the checkout, or GPBENCH_COMMIT, and `dirty`, whether files differ from it; else None."""
    # An installed package may lie inside somebody else's repository, whose commit would say nothing.
    if not (_ROOT / ".git").exists():
        return {"commit": os.environ.get("GPBENCH_COMMIT"), "dirty": None}
    head = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--", "gpbench", "conf") if head else None
    return {"commit": head or None, "dirty": None if changed is None else bool(changed)}


def host() -> dict[str, str | int | float]:
    """The processor's model, the cores this process may use, and the machine's memory in GiB."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    model = proc_field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    return {"cpu": model, "cores": cores, "memory_gib": round(memory, 1)}


def _git(*args: str) -> str | None:
    try:
        process = subprocess.run(["git", *args], cwd=_ROOT, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
