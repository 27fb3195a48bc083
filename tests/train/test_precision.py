"""Every run has the arithmetic that its record states; JAX's switches for debugging work."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
from toys import HERE, group

import gpbench
from gpbench import runtime
from gpbench.core.linalg import inverse_cholesky
from gpbench.errors import ConfigError
from gpbench.estimators import Regressor
from gpbench.train.devices import Devices
from gpbench.train.programs import lay_out

ROOT = Path(__file__).resolve().parents[2]
MAIN = "import sys; from gpbench.cli import main; sys.exit(main(sys.argv[1:]))"
SETTINGS = {"JAX_ENABLE_X64": "0", "JAX_DEFAULT_MATMUL_PRECISION": "bfloat16", "JAX_NUMPY_DTYPE_PROMOTION": "strict"}
SETTINGS |= {"JAX_NUMPY_RANK_PROMOTION": "raise", "JAX_DEFAULT_PRNG_IMPL": "rbg", "JAX_RANDOM_SEED_OFFSET": "3"}
FAST = "--xla_cpu_enable_fast_math"


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
    ("name", "value", "line"),
    [
        ("XLA_FLAGS", f"{FAST}=true", rf"^XLA_FLAGS has {FAST}: .*; leave it out$"),
        ("XLA_FLAGS", FAST, rf"^XLA_FLAGS has {FAST}: "),
        ("XLA_FLAGS", "--xla_dump_to= --xla_cpu_enable_fast_min_max=1", "^XLA_FLAGS has --xla_cpu_enable_fast_min_max"),
        ("NVIDIA_TF32_OVERRIDE", "1", r"^NVIDIA_TF32_OVERRIDE is set: .*; leave it out$"),
    ],
)
def test_settings_that_make_arithmetic_less_exact_are_refused_and_others_taken(name, value, line, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=line):
        runtime.fix_arithmetic()
    monkeypatch.delenv(name)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false --xla_cpu_fast_math_honor_nans=true")
    runtime.fix_arithmetic()


def test_a_file_of_flags_and_data_that_jax_cuts_to_32_bits_are_refused(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "flags.txt")
    with pytest.raises(ConfigError, match=r"^XLA_FLAGS=flags.txt: write the flags themselves"):
        runtime.configure(device="cpu")
    data = group()
    data.X = np.asarray(data.X)
    with jax.enable_x64(False), pytest.raises(ConfigError, match=r"^JAX makes float32 of float64: .* leave that out$"):
        lay_out(Devices(), data)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
Y = X[:, 0] + 0.1 * RNG.normal(size=12)


def fitted(method):
    return Regressor(method=method, options={"method.steps": 2}).fit(X, Y).predict(X, return_std=True)


def test_without_jit_the_numbers_are_the_same_to_rounding_and_the_search_for_nan_stops_no_healthy_run():
    compiled = fitted("linear")
    with jax.disable_jit():
        np.testing.assert_allclose(fitted("linear"), compiled, rtol=1e-6, atol=1e-9)
    with jax.disable_jit():
        runtime.fix_arithmetic()
        assert jax.config.jax_disable_jit
    with jax.debug_nans(True):
        np.testing.assert_allclose(inverse_cholesky(4.0 * jax.numpy.eye(2)), 0.5 * np.eye(2), rtol=1e-6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_process_that_was_forked_after_jax_had_started_is_refused():
    jax.devices()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        try:
            runtime.refuse_fork()
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    line = os.read(reader, 4096).decode()
    assert line.startswith("ConfigError: this process was forked after JAX had started") and "\n" not in line


def test_float32_beside_near_duplicate_rows_leaves_a_doubt_though_with_noise_vif_is_as_in_float64(tmp_path):
    rng, base = np.random.default_rng(0), np.random.default_rng(1).uniform(-2.0, 2.0, (12, 4))
    X, shift, order = np.repeat(base, 6, axis=0), rng.normal(size=(72, 4)), rng.permutation(72)
    y = np.sin(2.0 * X[:, 0]) + 0.05 * shift[:, 0]

    def run(method, distance, precision):
        table, rows = tmp_path / f"{distance}.csv", np.column_stack([X + distance * shift, y])[order]
        np.savetxt(table, rows, delimiter=",", header="a,b,c,d,y", comments="")
        own = {"protocol__precision": precision, "results": tmp_path / "results"}
        [record] = gpbench.run(method=method, dataset=table, target="y", **own)
        return record.metrics["test_ll"], "near_rows" in (record.diagnostics or {})

    (single, has_doubt), (double, no_doubt) = (run("vif", 1e-6, precision) for precision in ("float32", "float64"))
    assert has_doubt and not no_doubt and single == pytest.approx(double, abs=0.05)
    assert not run("linear", 0.1, "float32")[1] and not run("linear", 0.0, "float32")[1]
