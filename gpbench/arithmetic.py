"""The arithmetic that records stand for: options of JAX, and flags of XLA, which reads them once in a process."""

import os
import re
import subprocess
import sys

from gpbench.errors import ConfigError, require

_FLAGS = {
    # vmap of a gradient through Cholesky and triangular solves hangs for ever in XLA's CPU thread pool on few cores
    # unless this scheduler is off; off, it was also the fastest of the work-arounds measured.
    "--xla_cpu_enable_concurrency_optimized_scheduler": "false",
    # By default XLA fuses products with what makes their operands and evaluates the cosines of qsgp again for each tile
    # of a product: a step with 20 inputs took 146 ms with, and 81 without.  This setting leaves products alone.
    "--xla_cpu_experimental_ynn_fusion_type": "individual_dot",
    # XLA compiles a kernel of element-wise functions in a quarter less time without the newer of its two emitters, and
    # the kernel is no slower.
    "--xla_backend_extra_options": "xla_cpu_disable_tiled_emitter",
}
_COUNT_FLAG = "--xla_force_host_platform_device_count"
_READABLE_FLAGS = "GPBENCH_READABLE_XLA_FLAGS"  # variable with flags that XLA has read, for the processes of this one
_ARITHMETIC = {
    "jax_enable_x64": True,
    "jax_default_matmul_precision": "highest",
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_default_prng_impl": "threefry2x32",
    "jax_threefry_partitionable": True,
    "jax_random_seed_offset": 0,
    "jax_high_dynamic_range_gumbel": False,
    "jax_transfer_guard": "allow",
}
"""Options of JAX that change the numbers of a run or stop it, each with the value that every record was made with."""
_INEXACT = re.compile(  # flags of XLA that make its arithmetic less exact
    r"--(\w*(?:fast_math(?!_honor)|fast_min_max|alg_dot_bf16|bf16_\dway_gemm|fp_conversions)\w*)(?:=(\S*))?"
)


def add_flags(devices: int) -> None:
    """Adds the flags of XLA that runs need to those of the user, who may set the same flags to other values."""
    flags = _flags()
    mend = "write the flags themselves, not the name of a file with them"
    require(not flags or flags.startswith("-"), f"XLA_FLAGS={flags}: {mend}", ConfigError)
    own = _FLAGS | ({_COUNT_FLAG: str(devices)} if devices > 1 else {})
    absent = [f"{name}={value}" for name, value in own.items() if name not in flags]
    os.environ["XLA_FLAGS"] = " ".join([flags, *absent]).strip()


def check_flags() -> None:
    """Checks that XLA can read XLA_FLAGS: it ends a process where it cannot.  Raises ConfigError: it cannot."""
    flags = " ".join(flag for flag in _flags().split() if not flag.startswith((*_FLAGS, _COUNT_FLAG)))
    if flags and flags != os.environ.get(_READABLE_FLAGS):
        # in a process of its own, which may end so, and takes a fifth of a second: once for all jobs of a sweep
        command = [sys.executable, "-c", "from jaxlib import xla_client; xla_client.CompileOptions()"]
        printed = subprocess.run(command, capture_output=True, text=True).stderr
        if fault := re.search(r"(Unknown flags?|Couldn't|Could not open) .*", printed):
            raise ConfigError(f"XLA_FLAGS={flags}: {fault[0].strip('.')}; correct them, or leave them out")
        os.environ[_READABLE_FLAGS] = flags


def fix() -> None:
    """Gives JAX the arithmetic of records, or raises ConfigError where this process cannot have it any more."""
    import jax

    flags = _INEXACT.findall(os.environ.get("XLA_FLAGS", ""))
    faults = [f"XLA_FLAGS has --{flag}" for flag, value in flags if value.lower() not in ("false", "0")]
    if os.environ.get("NVIDIA_TF32_OVERRIDE", "0") != "0":
        faults.append("NVIDIA_TF32_OVERRIDE is set")
    for fault in faults:
        raise ConfigError(f"{fault}: numbers would be less exact than records state; leave it out")
    for option, value in _ARITHMETIC.items():
        if getattr(jax.config, option, value) != value:  # an option that this JAX does not have changes nothing
            jax.config.update(option, value)


def _flags() -> str:
    return os.environ.get("XLA_FLAGS", "").strip()
