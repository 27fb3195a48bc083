"""Workers must collect the same tests in one order; the annotations of gpbench are checked while the tests run."""

import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest

from gpbench.core.kernels import SquaredExponential
from gpbench.data import cards

ROOT = Path(__file__).parents[1]


def collected(files: list[str], seed: int, root: Path) -> list[str]:
    """The tests that a new process collects from files which it imports in this order, with this seed of hashes."""
    words = ["-o", "addopts=-q", "--collect-only", "-p", "no:xdist", "-p", "no:cacheprovider", *files]
    own = os.environ | {"PYTHONHASHSEED": str(seed), "PYTEST_ADDOPTS": ""}
    own.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=root, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_the_suite_is_the_same_in_another_order_of_imports_and_with_other_hashes(request):
    ours = [item.nodeid for item in request.session.items]
    files = list(dict.fromkeys(name.partition("::")[0] for name in ours))
    theirs = collected(files[::-1], 1, ROOT)
    assert [name for name in theirs if name in set(ours)] == ours


def test_tests_in_the_order_of_a_set_are_noticed(tmp_path):
    names = [f"case{number}" for number in range(20)]
    (tmp_path / "test_set.py").write_text(
        f"import pytest\n\n\n@pytest.mark.parametrize('name', set({names}))\ndef test_it(name): pass\n"
    )
    one, other = (collected(["test_set.py"], seed, tmp_path) for seed in (1, 2))
    assert one != other and sorted(one) == sorted(other)


KERNEL = SquaredExponential(jnp.asarray(0.0), jnp.zeros(2))


WRONG = {"a shape": lambda: KERNEL.cross(jnp.ones((4, 2)), jnp.ones(2)), "a type": lambda: cards.read(3)}
WRONG["a field"] = lambda: SquaredExponential("0", jnp.zeros(2))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_noticed(name):
    with pytest.raises(TypeError, match=r"[Tt]ype"):
        WRONG[name]()
