"""Memory: what JAX can still take, the most that was taken, and the refusal of work that needs more."""

import resource
import sys
from pathlib import Path

from gpbench.errors import ConfigError


def peak_mb() -> float:
    """The most memory taken so far, in MB of 10^6 bytes: on the GPU, or of this process where JAX runs on the CPU."""
    import jax

    stats = jax.local_devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return stats["peak_bytes_in_use"] / 1e6
    # Not ru_maxrss where there is better: a process starts with that of the one which started it.
    if high_water := proc_field("/proc/self/status", "VmHWM"):
        return int(high_water.split()[0]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6  # bytes there, KiB elsewhere


def require_memory(needed: float, what: str, fewer: str = "inducing points") -> None:
    """Raise ConfigError where `needed` bytes are more than JAX can still take, before it takes them.

    `what` needs them, and with `fewer` of something it would need less.
    """
    free = free_memory()
    if free is not None and needed > free:
        raise ConfigError(
            f"{what} need {amount(needed)}, and {amount(free)} of memory are free: try fewer {fewer},"
            " a smaller batch, protocol.precision=float32, run.together=1"
        )


def amount(bytes: float) -> str:
    """Bytes in GB, or TB from a thousand of them."""
    return f"{bytes / 1e9:.1f} GB" if bytes < 1e12 else f"{bytes / 1e12:,.1f} TB"


def free_memory() -> int | None:
    """Bytes that JAX can still take: of the GPU's pool, or of this machine's memory; None where nobody says.

    A limit on this process's control group (version 2: containers, Slurm) counts too, less what the group has taken
    but for files, which give way.
    """
    import jax

    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"]
    if not (available := proc_field("/proc/meminfo", "MemAvailable")):
        return None
    free = int(available.split()[0]) * 1024
    group = Path("/sys/fs/cgroup") / proc_field("/proc/self/cgroup", "0:").lstrip(":/")
    try:
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        files = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())["file"]
    except (OSError, ValueError, KeyError):  # no such group, or "max", which is no limit
        return free
    return min(free, limit - used + int(files))


def proc_field(path: str, name: str) -> str:
    """The first value of a field in one of Linux's tables; empty where there is none."""
    try:
        with open(path) as lines:
            return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
    except OSError:
        return ""
