"""Memory: free, at its peak, and the refusal of work that needs more.  Imports without JAX."""

import ctypes
import gc
import resource
import sys
from pathlib import Path

from gpbench.errors import MemoryShortage

MOST_PROGRAMS = 256
"""Compiled programs that a process keeps between jobs, at 1 to 2 MB each; a job of a new shape adds about 40."""
_surviving = 0
"""Programs that were in use elsewhere when the others were last forgotten."""


def peak_mb() -> float:
    """Peak memory in MB of 10^6 bytes: on the GPU, or of this process where JAX runs on the CPU."""
    import jax

    stats = jax.local_devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return float(stats["peak_bytes_in_use"]) / 1e6
    # Not ru_maxrss where there is better: a process starts with that of the one which started it.
    if high_water := proc_field("/proc/self/status", "VmHWM"):
        return int(high_water.split()[0]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6  # bytes there, KiB elsewhere


def require_memory(needed: float, subject: str, fewer: str = "inducing points") -> None:
    """Raises MemoryShortage for `needed` bytes above `free_memory()`, before any of them are taken.  `subject` names
    the arrays that need them, in the plural, and `fewer` the quantity to have fewer of."""
    free = free_memory()
    if free is not None and needed > free:
        raise MemoryShortage(
            f"{subject} need {amount(needed)}, and {amount(free)} of memory are free: try fewer {fewer},"
            " a smaller batch, protocol.precision=float32, run.together=1"
        )


def release_programs() -> bool:
    """Forgets JAX's compiled programs where more than `MOST_PROGRAMS` came since it last did; true where it does.  Jobs
    of one shape share their programs, so that only jobs of ever new shapes come to this.  What is still in use stays,
    and what is used again is compiled again, or read from JAX's cache on disk."""
    import jax

    global _surviving
    client = jax.local_devices()[0].client
    if len(client.live_executables()) <= _surviving + MOST_PROGRAMS:
        return False
    jax.clear_caches()
    gc.collect()
    _surviving = len(client.live_executables())
    if sys.platform == "linux":
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)  # glibc holds on to what is freed until it is told
    return True


def amount(bytes: float) -> str:
    """A number of bytes as text: in GB, from 1,000 GB in TB."""
    return f"{bytes / 1e9:.1f} GB" if bytes < 1e12 else f"{bytes / 1e12:,.1f} TB"


def free_memory() -> int | None:
    """Bytes that JAX can still take: of the GPU's pool, or of this machine's memory; None where it is unknown."""
    import jax

    stats = jax.local_devices()[0].memory_stats() or {}
    return int(stats["bytes_limit"] - stats["bytes_in_use"]) if "bytes_limit" in stats else free_host_memory()


def free_host_memory() -> int | None:
    """Bytes of this machine's memory that are free; None where it is unknown.  A limit on this process's control group
    (version 2: containers, Slurm) counts too, less the group's memory without cached files, which give way."""
    if not (available := proc_field("/proc/meminfo", "MemAvailable")):
        return None
    free = int(available.split()[0]) * 1024
    group = Path("/sys/fs/cgroup") / proc_field("/proc/self/cgroup", "0:").lstrip(":/")
    try:
        limit, current = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        files = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())["file"]
    except (OSError, ValueError, KeyError):  # no such group, or "max", which is no limit
        return free
    return min(free, limit - current + int(files))


def proc_field(path: str, name: str) -> str:
    """The value of the line that begins with `name` in one of Linux's tables, such as /proc/meminfo, or ""."""
    try:
        with open(path) as lines:
            return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
    except OSError:
        return ""
