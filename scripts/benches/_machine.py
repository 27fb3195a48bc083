"""What a timing must be read with: the machine, what else runs on it, its matrix products; seconds of a process."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from gpbench.records import environment

QUIET = 0.1
"""Share of a core that others may use on a machine that counts as idle."""
_LEAST = 0.05


def facts() -> dict[str, Any]:
    """Processor, cores, versions, commit, the BLAS, and the load now, without starting JAX."""
    known = {**environment.host(), "versions": environment.versions(), **environment.commit()}
    return {**known, "blas": _blas(), "load": os.getloadavg()[0], "others": round(sum(others().values()), 2)}


def product_rates() -> dict[str, float]:
    """FLOP/s of a product (512, 512) x (512, 1024), by precision."""
    from benches._timing import product_rate

    return {precision: product_rate(512, 1024, precision) for precision in ("float32", "float64")}


def others(seconds: float = 1.0) -> dict[str, float]:
    """Cores that other processes use on the average over some seconds, by their names; {} where there is no /proc."""
    before, started = _ticks(), time.monotonic()
    time.sleep(seconds)
    used: dict[str, float] = {}
    scale = os.sysconf("SC_CLK_TCK") * (time.monotonic() - started)
    for process, (name, ticks) in _ticks().items():
        share = (ticks - before.get(process, (name, 0))[1]) / scale
        if process != os.getpid() and share > 0:
            used[name] = used.get(name, 0.0) + share
    return used


def report(used: dict[str, float]) -> str:
    """A line about what others use: "1.7 of 2 cores are in use by others: python 1.6, git 0.1"."""
    names = [f"{name} {share:.1f}" for name, share in sorted(used.items(), key=lambda item: -item[1])[:3]]
    total = sum(used.values())
    text = f"{total:.1f} of {os.cpu_count()} cores are in use by others"
    return f"{text}: {', '.join(names)}" if total > _LEAST else "nothing else runs on the cores"


def wait_until_idle(seconds: float) -> None:
    """Waits up to these seconds until others leave the cores alone; says on stderr what they do, where they do not."""
    end = time.monotonic() + seconds
    while (total := sum((used := others()).values())) > QUIET and time.monotonic() < end:
        time.sleep(1.0)
    warning = "warning: timings are of busy cores: " if total > QUIET else ""
    print(f"{warning}{report(used)}; load {os.getloadavg()[0]:.1f}", file=sys.stderr)


def timed(
    command: list[str], *, may_fail: bool = False, **environment: str
) -> tuple[float, float, subprocess.CompletedProcess]:
    """Wall and CPU seconds of a process, and the process.  Exits with its message where it fails and may not."""
    before, started = os.times(), time.perf_counter()
    process = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    if process.returncode and not may_fail:
        raise SystemExit(process.stderr.strip() or f"{' '.join(command)}: exit code {process.returncode}")
    return wall, cpu, process


def _ticks() -> dict[int, tuple[str, int]]:
    """Name and clock ticks of user and system time of every process."""
    known = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, name, rest = re.match(r"(\d+) \((.*)\) (.*)", path.read_text(), re.S).groups()  # type: ignore[union-attr]
        except (OSError, AttributeError):  # it has ended
            continue
        fields = rest.split()
        known[int(pid)] = (name, int(fields[11]) + int(fields[12]))
    return known


def _blas() -> str:
    """Name and version of the BLAS that NumPy was built with."""
    code = "import numpy; print(numpy.show_config(mode='dicts')['Build Dependencies']['blas'])"
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    words = dict(re.findall(r"'(name|version)': '([^']*)'", text))
    return " ".join(words.values())
