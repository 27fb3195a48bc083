"""The mathematics starts without JAX; programs are forgotten where jobs of ever new shapes made many, or kept."""

import gc
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from gpbench.config.compose import compose
from gpbench.core import memory
from gpbench.core.bases import KernelFunctions
from gpbench.core.kernels import kernel_spec
from gpbench.core.samplers import Samples, agreement
from gpbench.records.plan import RunPlan
from gpbench.records.store import Store
from gpbench.train import session
from gpbench.train.stop import StopRequest


@pytest.fixture
def limit(monkeypatch) -> int:
    """A process without compiled programs, which keeps 20."""
    monkeypatch.setattr(memory, "_surviving", 0)
    monkeypatch.setattr(memory, "MOST_PROGRAMS", 0)
    memory.release_programs()
    monkeypatch.setattr(memory, "MOST_PROGRAMS", 20)
    return memory._surviving + 20


def count() -> int:
    return len(jax.local_devices()[0].client.live_executables())


def work(rows: int) -> float:
    """A job on so many rows: a few programs for each shape."""
    return float(jnp.sum(jnp.ones(rows) * 2.0))


def test_programs_of_many_shapes_are_bounded(limit):
    released = []
    for rows in range(1, 21):
        assert work(rows) == 2.0 * rows
        released.append(memory.release_programs())
        assert count() <= limit
    assert any(released)


def test_jobs_of_one_shape_keep_their_programs(limit):
    work(3)
    before = count()
    for _ in range(30):
        work(3)
        assert not memory.release_programs()
    assert count() == before


def test_programs_in_use_survive(limit, monkeypatch):
    held = jax.jit(lambda x: x + 1.0).lower(jnp.ones(2)).compile()
    monkeypatch.setattr(memory, "MOST_PROGRAMS", 0)
    assert memory.release_programs()
    assert held(jnp.ones(2)).tolist() == [2.0, 2.0]


CHAINS = ["hidden=[2]", "samples=4", "chains=2", "warmup=2", "max_doublings=2"]


def agree() -> dict:
    return agreement(Samples(jnp.ones((4, 2, 3)), jnp.asarray(4)), "hmc")


def square() -> jax.Array:
    X = jnp.linspace(0.0, 1.0, 12).reshape(6, 2)
    return KernelFunctions.around(X[:4], 2).initial_squares(kernel_spec("matern32").initial(X, start="median"), X)


@pytest.mark.parametrize("function", [agree, square])
def test_a_loop_outside_a_program_is_compiled_once(function):
    function()
    before = count()
    function()
    assert count() == before


AGAIN = {"svi": ["inducing=3"], "hmc": CHAINS, "sgpr_greedy": ["inducing=3"], "qsrvm": ["basis_batch=5"]}
"""Methods with an optimiser of optax, and with loops of JAX in `init` or `diagnostics`, which are not compiled with it.
"""


@pytest.mark.parametrize(
    "words", [[f"method={name}", *(f"method.{word}" for word in words)] for name, words in AGAIN.items()], ids=AGAIN
)
def test_a_run_that_is_made_again_keeps_no_program_more(words, tmp_path):
    def kept(times: int) -> int:
        results = tmp_path / str(times)
        others = ["dataset=sinc", "method.steps=4", f"run.results={results}", "run.progress=false"]
        plan = RunPlan.from_config(compose([*words, *others]))
        with StopRequest() as stop:
            assert len(session.train(plan, store=Store(results), stop=stop)[0]) == len(plan.runs)
        gc.collect()
        return count()

    _, second, third = (kept(times) for times in range(3))
    assert second == third


def test_core_and_its_memory_are_imported_without_jax():
    code = "import sys, gpbench.core.memory; sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
