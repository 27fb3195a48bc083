"""What `runtime.configure` promises, each in a fresh process: JAX reads its settings once."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpbench import runtime
from gpbench.core import memory
from gpbench.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]

DEADLOCK = """
runtime.configure()
import jax, jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

def f(K, X):
    return jnp.sum(solve_triangular(jnp.linalg.cholesky(K), X, lower=True) ** 2)

K = jnp.stack([jnp.eye(103) * (2 + i) + 0.1 for i in range(4)])
X = jax.random.normal(jax.random.key(0), (4, 103, 691))
for _ in range(3):
    gradient = jax.jit(jax.vmap(jax.grad(f)))(K, X).block_until_ready()
print(bool(jnp.isfinite(gradient).all()), gradient.dtype)
"""

COMPILE = """
runtime.configure()
import collections, jax
counts = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: counts.update([event.rpartition("/")[2]]))
print(jax.jit(lambda x: (x ** 2).sum() + 1)(jax.numpy.arange(7.0)))
print(counts["cache_misses"], counts["cache_hits"])
"""


REFUSED = """
from gpbench.errors import ConfigError
try:
    runtime.configure(device={device})
    runtime.start({device})
except ConfigError as error:
    print(error)
"""


def python(code: str, folder: Path, **more: str) -> list[str]:
    """The lines a fresh interpreter prints that has `runtime`, without the settings of this process."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "XLA_"))}
    own = {"PYTHONPATH": str(ROOT), "GPBENCH_CACHE": str(folder), "JAX_PLATFORMS": "cpu"}
    words = [sys.executable, "-c", f"from gpbench import runtime\n{code}"]
    done = subprocess.run(words, env={**clean, **own, **more}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_mapped_gradients_through_cholesky_do_not_hang_and_a_second_process_compiles_nothing(tmp_path):
    # the case that hung for ever on two cores without the flag; `python` has a time limit
    assert python(DEADLOCK, tmp_path) == ["True float64"]
    first, second = python(COMPILE, tmp_path), python(COMPILE, tmp_path)
    assert first[0] == second[0]
    assert int(first[1].split()[0]) > 0
    misses, hits = map(int, second[1].split())
    assert misses == 0 and hits > 0


def test_a_cache_that_cannot_be_written_is_one_warning(tmp_path):
    show = """
import contextlib, io
with contextlib.redirect_stderr(io.StringIO()) as said:
    runtime.configure()
    runtime.configure()
import jax, warnings
warnings.simplefilter("error")
jax.jit(lambda x: x + 1)(jax.numpy.arange(5.0))
print(said.getvalue(), end="")
"""
    (tmp_path / "file").write_text("")
    (line,) = python(show, tmp_path / "file")
    assert line.startswith(f"gpbench: warning: {tmp_path / 'file' / 'xla'}: ") and "GPBENCH_CACHE" in line


def test_who_imports_jax_first_has_64_bit_types_and_memory_fraction_and_device_reach_jax(tmp_path):
    show = "runtime.require_float64(); import jax; print(jax.numpy.zeros(1).dtype)"
    assert python(show, tmp_path, JAX_ENABLE_X64="0") == ["float64"]
    show = """
runtime.configure(device="cpu", memory_fraction=0.4)
import os, jax
print(os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"], jax.default_backend(), runtime.device_name() != "")
"""
    assert python(show, tmp_path) == ["0.4 cpu True"]


def test_the_users_own_settings_stay_and_our_flags_join_the_others(tmp_path):
    own = {
        "XLA_FLAGS": "--xla_cpu_enable_concurrency_optimized_scheduler=true --xla_cpu_experimental_ynn_fusion_type="
        " --xla_backend_extra_options=",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "elsewhere"),
        "JAX_ENABLE_X64": "false",
    }
    show = "import os; runtime.configure()\nfor name in %r: print(os.environ[name])"
    assert python(show % (list(own),), tmp_path, **own) == list(own.values())
    show = "import os; runtime.configure(); print(os.environ['XLA_FLAGS'])"
    other = "--xla_cpu_multi_thread_eigen=true"
    assert python(show, tmp_path, XLA_FLAGS=other)[0].split() == [
        other,
        "--xla_cpu_enable_concurrency_optimized_scheduler=false",
        "--xla_cpu_experimental_ynn_fusion_type=individual_dot",
        "--xla_backend_extra_options=xla_cpu_disable_tiled_emitter",
    ]


def test_a_missing_gpu_is_one_line(tmp_path):
    show = REFUSED.format(device='"gpu"')
    assert python(show, tmp_path, CUDA_VISIBLE_DEVICES="")[0].startswith("run.device=gpu: JAX cannot use a GPU here")


UNREADABLE = {
    "JAX_PLATFORMS=cuda": "JAX_PLATFORMS=cuda: JAX finds no such device",
    "JAX_ENABLE_X64=maybe": "JAX cannot read its settings: .*JAX_ENABLE_X64",
    "JAX_NUMPY_DTYPE_PROMOTION=x": "JAX cannot read its settings: .*jax_numpy_dtype_promotion",
    "XLA_FLAGS=--nonsense": "XLA_FLAGS=--nonsense: Unknown flag in XLA_FLAGS: --nonsense; correct them",
    "XLA_FLAGS=--xla_cpu_enable_fast_math=maybe": "XLA_FLAGS=.*: Couldn't interpret value maybe",
}


@pytest.mark.parametrize("setting, line", UNREADABLE.items())
def test_a_setting_that_jax_cannot_read_is_one_line(setting, line, tmp_path):
    if setting == "JAX_PLATFORMS=cuda" and shutil.which("nvidia-smi"):
        pytest.skip("it can be read here")
    [printed] = python(REFUSED.format(device=None), tmp_path, **dict([setting.split("=", 1)]))
    assert re.match(line, printed)


def test_a_setting_that_stops_the_arithmetic_is_put_right(tmp_path):
    show = """
runtime.configure()
runtime.start()
import jax.numpy as jnp
print(jnp.ones(2, jnp.float32) + jnp.ones(2, int) + 1.0)
"""
    settings = {"JAX_NUMPY_DTYPE_PROMOTION": "strict", "JAX_TRANSFER_GUARD": "disallow"}
    assert python(show, tmp_path, **settings) == ["[3. 3.]"]


def test_the_memory_peak_holds_what_was_allocated(tmp_path):
    show = """
from gpbench.core import memory
runtime.configure()
import numpy as np
before = memory.peak_mb()
np.ones(40_000_000)
print(300 < memory.peak_mb() - before < 400)
"""
    assert python(show, tmp_path) == ["True"]


def test_too_little_memory_an_unknown_device_and_errors_of_tracing_are_said_with_their_remedy(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 8e9)
    with pytest.raises(ConfigError, match=r"^work need 32\.0 TB, and 8\.0 GB of memory are free: try fewer features"):
        memory.require_memory(32e12, "work", "features")
    with pytest.raises(ConfigError, match=r"^work need 9\.5 GB, .* try fewer inducing points, a smaller batch"):
        memory.require_memory(9.5e9, "work")
    with pytest.raises(ConfigError, match="a device is one of cpu, gpu"):
        runtime.configure(device="abacus")
    import jax

    for function, remedy in (
        (lambda x: 1.0 if x > 0 else x, "use jnp.where or jax.lax"),
        (lambda x: x * sum(range(x)), "use jnp.where or jax.lax"),
        (np.asarray, "use jax.numpy"),
    ):
        with pytest.raises(TypeError) as raised:
            jax.jit(function)(1)
        assert runtime.described(raised.value).endswith(remedy)
