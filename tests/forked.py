"""Commands in processes forked from one that has imported what they need: each is spared seconds of imports.

A command has its own process all the same, with its folder, environment, streams and exit code.
"""

import atexit
import functools
import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(words: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `gpbench WORDS` in `folder`, in an environment with a PYTHONPATH."""
    code, out, err, _ = measured(words, folder, environment, timeout)
    return code, out, err


def measured(words: Sequence[str], folder: Path, environment: Mapping, timeout: float) -> tuple[int, str, str, int]:
    """The same, and the largest memory that the process had, in kB; that of the imports is in it."""
    server = _server(environment["PYTHONPATH"])
    with tempfile.TemporaryDirectory() as scratch:
        streams = [os.devnull, *(os.path.join(scratch, name) for name in ("out", "err"))]
        server.stdin.write(json.dumps([list(words), str(folder), dict(environment), streams]) + "\n")
        server.stdin.flush()
        if not select.select([server.stdout], [], [], timeout)[0]:
            os.killpg(server.pid, signal.SIGKILL)
            _server.cache_clear()
            raise subprocess.TimeoutExpired(["gpbench", *words], timeout)
        code, peak = map(int, server.stdout.readline().split())
        out, err = (Path(stream).read_text() for stream in streams[1:])
        return code, out, err, peak


def alive(mark: str) -> list[int]:
    """The processes that run `gpbench` and have this text in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            marked = mark.encode() in (entry / "environ").read_bytes()
            if marked and b"gpbench" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@functools.cache
def _server(path: str) -> subprocess.Popen[str]:
    """A process with this PYTHONPATH, which is ready to fork, and ends when its stdin does."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    server = subprocess.Popen([sys.executable, __file__], env={**os.environ, "PYTHONPATH": path}, **pipes)
    atexit.register(server.communicate)
    assert server.stdout.readline() == "ready\n"
    return server


def _prepare() -> None:
    """Imports JAX and what most verbs need.  A fork is safe, since these imports start no threads."""
    from gpbench import runtime

    runtime.configure()
    runtime.import_jax()
    import optax  # noqa: F401
    import scipy.linalg  # noqa: F401

    import gpbench.cli.run
    import gpbench.data.splits
    import gpbench.train.job
    import gpbench.train.progress  # noqa: F401
    from gpbench.sweep import launcher

    launcher.chosen_launcher([], [])  # the parsers of Hydra build their tables at the first word
    gc.freeze()
    print("ready", flush=True)


def _serve() -> list[str]:
    """Forks a process for each line of stdin and prints its exit code; returns the words of a forked one there."""
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            words, folder, environment, streams = json.loads(line)
            _enter(folder, environment, streams)
            return words
        _, status, usage = os.wait4(process, 0)
        print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, flush=True)
    sys.exit()


def _enter(folder: str, environment: dict[str, str], streams: list[str]) -> None:
    """Gives this process its folder, which `python -m` has first on the path, its environment and its streams."""
    os.chdir(folder)
    sys.path[0] = folder
    os.environ.clear()
    os.environ.update(environment)
    if most := environment.get("GPBENCH_TEST_MEMORY"):  # bytes of a process that may fill the machine
        resource.setrlimit(resource.RLIMIT_AS, (int(most), int(most)))
    for number, stream in enumerate(streams):
        opened = os.open(stream, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


if __name__ == "__main__":
    _prepare()
    sys.argv = ["gpbench", *_serve()]
    from gpbench.cli import main

    sys.exit(main())
