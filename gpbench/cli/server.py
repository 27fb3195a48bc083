"""`python -m gpbench.cli.server PARENT SOCKET RUN`: imports JAX, which starts no threads, and then forks a process for
each job of a sweep, which is spared these two seconds."""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

from gpbench.sweep.child import die_with, outlive_signals

_LONGEST = 2**18  # largest number of bytes of a message


def _import(run: Any) -> None:
    """Imports what jobs with this `run` section need.  Of an error the jobs tell, which meet it again."""
    with contextlib.suppress(Exception, SystemExit):
        from gpbench import runtime
        from gpbench.train import session

        session.configure(run)
        runtime.import_jax()
        import optax  # noqa: F401
        import scipy.linalg  # noqa: F401  # whose BLAS makes JAX's factorisations on a CPU

        import gpbench.cli.run
        import gpbench.train.job
        import gpbench.train.progress  # noqa: F401
    gc.freeze()  # else the first collection of every job would copy all pages


def _serve(requests: socket.socket) -> list[str] | None:
    """Forks a process for each job; returns its words there, and None here after the end of the last one.  A message is
    [JOB, WORDS, ENVIRONMENT], with three streams, or [JOB, SIGNAL]; the answer [JOB, EXIT CODE]."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    jobs: dict[int, int] = {}  # by process
    is_open, this = True, os.getpid()
    while is_open or jobs:
        ready, _, _ = select.select([read_end, *[requests.fileno()] * is_open], [], [])
        if read_end in ready:
            os.read(read_end, 4096)
            for process in list(jobs):
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    _answer(requests, jobs.pop(process), os.waitstatus_to_exitcode(status))
        if requests.fileno() not in ready:
            continue
        message, streams, _, _ = socket.recv_fds(requests, _LONGEST, 3)
        is_open = bool(message)
        job, *content = json.loads(message or "[null]")
        if len(content) == 1:
            for process in (process for process, other in jobs.items() if other == job):
                os.kill(process, *content)
        elif content:
            try:
                process = os.fork()
            except OSError:  # no memory or too many processes
                _answer(requests, job, 1)
            else:
                if process == 0:
                    for end in (requests.detach(), read_end, write_end):
                        os.close(end)
                    words, environment = content
                    _begin(this, streams, environment)
                    return words
                jobs[process] = job
            for stream in streams:
                os.close(stream)
    return None


def _answer(requests: socket.socket, job: int, code: int) -> None:
    """Says that a job has ended, where the sweep still listens."""
    with contextlib.suppress(OSError):
        requests.send(json.dumps([job, code]).encode())


def _begin(parent: int, streams: Sequence[int], environment: dict[str, str]) -> None:
    """Gives this forked process its streams, environment, session and signals, and lets it die with its parent."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    die_with(parent)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # New ones, since the old ones remember that theirs could seek
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.update(environment)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()  # a generator that modules of the user's may draw from; ours draw from keys
    outlive_signals()


if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    _import(json.loads(sys.argv[3]))
    if (words := _serve(socket.socket(fileno=int(sys.argv[2])))) is not None:
        from gpbench.cli import main

        sys.argv = ["gpbench", *words]
        sys.exit(main())
