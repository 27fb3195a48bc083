"""For every test: JAX configured before it is imported, shapes checked at each call, temporary folders, bounded memory.

The tests compile thousands of small programs and run each a few times, so nearly all of their time is XLA's.  They run
with little of its optimiser; `JAX_DISABLE_MOST_OPTIMIZATIONS=0 make test` tests the programs that users run.  Compiled
programs are kept in `.pytest_cache/xla` for the next time; `make clean` removes them.
"""

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import os
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest
import typechecks
from packaging.version import Version

from gpbench import runtime, targets

# Collection creates objects that all live until the end: at the default thresholds, the collector walks through them
# again and again.
gc.set_threshold(50_000, 20, 20)

_MIRROR = os.environ.get("GPBENCH_MIRROR")
_PROGRAMS = Path(__file__).resolve().parents[1] / ".pytest_cache" / "xla"
_SESSION = Path(tempfile.mkdtemp(prefix="gpbench-tests-"))
atexit.register(shutil.rmtree, _SESSION, ignore_errors=True)

# In the environment, for the commands that tests start too; and at once, for `configure` reads the cache's place.
# xdist's workers inherit cache and results folder, so that what one has planned is there for the others.
_PRIVATE = ("STORE",) if "PYTEST_XDIST_WORKER" in os.environ else ("STORE", "RESULTS", "CACHE")
os.environ.pop("COLUMNS", None)  # which xdist sets, and tables would be broken to it
os.environ |= {f"GPBENCH_{name}": str(_SESSION / name.lower()) for name in (*_PRIVATE, "SHIPPED")}


def _quick_compilation():
    """Make XLA optimise little, in xdist's workers and in commands too: they inherit the environment and its cache."""
    os.environ["JAX_COMPILATION_CACHE_DIR"] = os.environ.get("JAX_COMPILATION_CACHE_DIR") or str(_PROGRAMS)
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_use_fusion_emitters" not in flags and Version(version("jaxlib")) < Version("0.11"):
        # A quarter less, without the MLIR emitters, which JAX 0.12 has no flag for.  Their predecessors compiled a
        # gradient wrongly where the code of a program was split into parts; in one part all tests pass.
        flags += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    os.environ["XLA_FLAGS"] = flags.strip()


if "PYTEST_XDIST_WORKER" not in os.environ:
    _quick_compilation()
runtime.configure(device="cpu")
runtime.import_jax()  # so that commands which the tests start know that XLA can read these flags
typechecks.install()  # in the tests only: users do not wait for it

memory = importlib.import_module("gpbench.core.memory")
memory.MOST_PROGRAMS = 2**30  # the tests forget programs by their memory: see `pytest_runtest_teardown`

# JAX makes a context of MLIR for each program, from 0.12 on for each ten, and keeps it: a megabyte, and a tenth of the
# time of a small program.  Here the programs share one until they are forgotten.
lowering = importlib.import_module("jax._src.interpreters.mlir")
lowering.make_ir_context = functools.cache(lowering.make_ir_context)


_SLOW = {*(Path(__file__).parent / "slow.txt").read_text().splitlines()}


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: listed in slow.txt, where a quicker test stands beside each one")
    # of an annotation of omegaconf's, which is not ours to mend
    config.addinivalue_line("filterwarnings", "ignore::beartype.roar.BeartypeDecorHintPep585DeprecationWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """Each of xdist's workers begins at another file: in a new clone it then finds most of them compiled by others."""
    folders = [Path(word) for word in session.config.args]
    if "PYTEST_XDIST_WORKER" in os.environ and all(folder.is_dir() for folder in folders):
        files = sorted({str(file.resolve()) for folder in folders for file in folder.rglob("test_*.py")})
        worker, workers = int(os.environ["PYTEST_XDIST_WORKER"][2:]), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        begin = len(files) * worker // workers
        session.config.args = files[begin:] + files[:begin]


def pytest_collection_modifyitems(items):
    """Tests that start processes and wait for them come first: the last ones that xdist deals out are then short."""
    waiting = {"test_cluster.py", "test_devices.py", "test_resume.py", "test_sweep.py"}
    items.sort(key=lambda item: (item.path.name not in waiting, item.path))
    for item in items:
        if item.nodeid in _SLOW:
            item.add_marker(pytest.mark.slow)


_before = 0
"""Bytes that this process held before it compiled the programs that it has now."""


def pytest_collection_finish():
    # Modules and tests live until the end: the collector need not walk through them each time JAX traces a program.
    gc.collect()
    gc.freeze()
    global _before
    _before = _resident()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Forget compiled programs where they have come to take three quarters of a gigabyte; half, after a file's last.

    Files share the programs of single operations, so to forget them after every file costs more than it frees.  What
    is left counts no more: above a fixed limit, hundreds of tests each forgot programs in vain, for 0.4 s.
    """
    limit = 3 * 2**28 if nextitem is not None and nextitem.path == item.path else 2**29
    global _before
    if "jax" in sys.modules and _resident() - _before > limit:
        sys.modules["jax"].clear_caches()
        lowering.make_ir_context.cache_clear()
        gc.collect()
        if sys.platform == "linux":  # glibc holds on to what is freed until it is told
            ctypes.CDLL(None).malloc_trim(0)
        _before = _resident()


def _resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


@pytest.fixture(scope="session", autouse=True)
def no_mirror():
    """No test reads a mirror unless it asks for one.  Not at import: xdist's workers inherit the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GPBENCH_MIRROR", raising=False)
        yield


@pytest.fixture(autouse=True)
def own_folders(request, monkeypatch):
    """The test's folder, and any that it puts on Python's path, count as named with --config-dir."""
    targets._folders.append(request.path.parent)
    prepend = monkeypatch.syspath_prepend
    monkeypatch.syspath_prepend = lambda path: (prepend(path), targets._folders.append(Path(path)))


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The mirror of data files that GPBENCH_MIRROR names."""
    if not _MIRROR:
        pytest.skip("GPBENCH_MIRROR names no mirror of the data files")
    return Path(_MIRROR)


@pytest.fixture
def printed(capsys):
    """A function from a command's words to what it prints; it ends with code 0."""
    return lambda *words: _said(capsys, words, 0).out


@pytest.fixture
def refused(capsys):
    """A function from a command's words to what it says on stderr; it ends with code 2, or another one."""
    return lambda *words, code=2: _said(capsys, words, code).err


@pytest.fixture
def streams(capsys):
    """A function from a command's words to what it writes on stdout and stderr; it ends with code 0, or another one."""
    return lambda *words, code=0: _said(capsys, words, code)


@pytest.fixture
def one_line():
    """As `pytest.raises`, of a message of one line, with the text that it `says`, of at most so many characters."""

    @contextlib.contextmanager
    def raises(kind, match=None, *, says="", most=1000):
        with pytest.raises(kind, match=match) as caught:
            yield
        assert says in (line := str(caught.value)) and "\n" not in line and len(line) <= most, line

    return raises


@pytest.fixture(scope="session")
def new_file():
    """A function that writes a file, with the folders that it lies in."""

    def write(path, content):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def _said(capsys, words, code):
    capsys.readouterr()  # of what went before
    assert importlib.import_module("gpbench.cli").main([*map(str, words)]) == code
    return capsys.readouterr()
