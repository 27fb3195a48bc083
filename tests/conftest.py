"""For every test: JAX settled before it is imported, shapes checked at each call, folders of the session's own."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

from gpbench import runtime

_MIRROR = os.environ.get("GPBENCH_MIRROR")
_SESSION = Path(tempfile.mkdtemp(prefix="gpbench-tests-"))
atexit.register(shutil.rmtree, _SESSION, ignore_errors=True)

# In the environment, for the commands that tests start too; and at once, for `configure` reads the cache's place.
os.environ |= {f"GPBENCH_{name}": str(_SESSION / name.lower()) for name in ("STORE", "RESULTS", "CACHE")}
runtime.configure(device="cpu")
# The shapes in gpbench's signatures are checked in the tests, and only there: users do not wait for it.
# The tower lets a whole number be a float, as the configuration does.
install_import_hook("gpbench", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")


def pytest_configure(config):
    # of an annotation of omegaconf's, which is not ours to mend
    config.addinivalue_line("filterwarnings", "ignore::beartype.roar.BeartypeDecorHintPep585DeprecationWarning")


@pytest.fixture(scope="session", autouse=True)
def no_mirror():
    """No test reads a mirror unless it asks for one.  Not at import: xdist's workers inherit the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GPBENCH_MIRROR", raising=False)
        yield


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The mirror of data files that GPBENCH_MIRROR names."""
    if not _MIRROR:
        pytest.skip("GPBENCH_MIRROR names no mirror of the data files")
    return Path(_MIRROR)
