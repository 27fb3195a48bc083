"""`python -m gpbench.sweep.child PARENT CORES WORDS`: the command `gpbench WORDS`, which dies with its parent process.

The process arranges this itself, since a function between fork and exec is unsafe beside the threads of JAX, which
warns of it.
"""

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def arrange(parent: int, cores: str) -> None:
    """Lets Linux kill this process when its parent ends, and keeps it to some cores.

    Args:
        parent: Number of the parent process.
        cores: Numbers of the cores, as in "0,1"; "" for all.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died first
        os._exit(1)
    if cores:
        os.sched_setaffinity(0, map(int, cores.split(",")))


if __name__ == "__main__":
    arrange(int(sys.argv[1]), sys.argv[2])
    sys.argv[1:] = sys.argv[3:]
    runpy.run_module("gpbench", run_name="__main__")
