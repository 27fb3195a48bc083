"""Every run has the arithmetic that its record states, whoever imported JAX and with whatever environment."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import HERE, Walk, group

from gpbench import arithmetic, runtime
from gpbench.core.predictive import BernoulliPredictive
from gpbench.errors import ConfigError, ContractError
from gpbench.train.devices import Devices
from gpbench.train.group import Fit, initial
from gpbench.train.programs import Programs, lay_out

ROOT = Path(__file__).resolve().parents[2]
MAIN = "import sys; from gpbench.cli import main; sys.exit(main(sys.argv[1:]))"
SETTINGS = {
    "JAX_ENABLE_X64": "0",
    "JAX_DEFAULT_MATMUL_PRECISION": "bfloat16",
    "JAX_NUMPY_DTYPE_PROMOTION": "strict",
    "JAX_NUMPY_RANK_PROMOTION": "raise",
    "JAX_DEFAULT_PRNG_IMPL": "rbg",
    "JAX_RANDOM_SEED_OFFSET": "3",
}


def numbers(folder: Path, code: str, **settings: str) -> tuple:
    """Id, objective and metrics of a run of a fresh process without this one's settings of JAX."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "XLA_"))}
    own = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "GPBENCH_RESULTS": str(folder)}
    own |= {"JAX_COMPILATION_CACHE_DIR": os.environ["JAX_COMPILATION_CACHE_DIR"]}
    words = ["run", "--config-dir", str(HERE), "dataset=wdbc", "method=walk", "method.steps=2", "--json"]
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, env={**clean, **own, **settings}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)["records"]
    return record["id"], record["precision"], record["objective"], record["metrics"]


def test_neither_the_environment_nor_an_earlier_import_of_jax_changes_a_number(tmp_path):
    expected = numbers(tmp_path / "clean", MAIN)
    assert numbers(tmp_path / "first", f"import jax, jax.numpy; {MAIN}", **SETTINGS) == expected


@pytest.mark.parametrize(
    "flags",
    ["--xla_cpu_enable_fast_math=true", "--xla_cpu_enable_fast_math", "--xla_dump_to= --xla_cpu_enable_fast_min_max=1"],
)
def test_flags_of_xla_that_make_arithmetic_less_exact_are_refused(flags, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", flags)
    with pytest.raises(ConfigError, match=r"^XLA_FLAGS has --xla_cpu_enable_fast_m\w+: .*; leave it out$"):
        arithmetic.fix()


def test_products_in_tf32_by_another_variable_are_refused(monkeypatch):
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    with pytest.raises(ConfigError, match=r"^NVIDIA_TF32_OVERRIDE is set: .*; leave it out$"):
        arithmetic.fix()


def test_flags_of_xla_that_leave_arithmetic_alone_are_taken(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false --xla_cpu_fast_math_honor_nans=true")
    arithmetic.fix()


def test_a_file_of_flags_is_refused_before_xla_ends_the_process(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "flags.txt")
    with pytest.raises(ConfigError, match=r"^XLA_FLAGS=flags.txt: write the flags themselves"):
        runtime.configure(device="cpu")


def test_data_that_jax_cuts_to_32_bits_are_refused():
    data = group()
    data.X = np.asarray(data.X)
    with jax.enable_x64(False), pytest.raises(ConfigError, match=r"^JAX makes float32 of float64: .* leave that out$"):
        lay_out(Devices(), data)


def test_predictions_of_another_precision_than_the_data_are_refused():
    class Single(Walk):
        def predict(self, state, X, *, key):
            logits = (X @ state.w).astype(jnp.float32)
            return BernoulliPredictive(jax.nn.log_sigmoid(-logits), jax.nn.log_sigmoid(logits))

    method, data = Single(name="single", steps=1), group()
    with pytest.raises(ContractError, match=r"^method single predicts \w+ in float32 from data in float64: use the"):
        Programs(method).predict(lay_out(Devices(), data), Fit(initial(method, data)))
