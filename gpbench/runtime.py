"""Settings of JAX, made before it is imported, and facts about the machine that JAX knows.

JAX and XLA read most of their settings from the environment, once.  A variable the user has set is never changed.
"""

import os
import platform
import re
import subprocess
import sys

from gpbench import paths
from gpbench.core import memory
from gpbench.errors import ConfigError

# vmap of a gradient through Cholesky and triangular solves hangs for ever in XLA's CPU thread pool on few cores
# unless this scheduler is off; off, it was also the fastest of the work-arounds measured.
_DEADLOCK_FLAG = "--xla_cpu_enable_concurrency_optimized_scheduler"
# By default XLA fuses products with what makes their operands and evaluates the cosines of qsgp again for each tile of
# a product: a step with 20 inputs took 146 ms with, and 81 without.  This setting leaves products alone.
_FUSION_FLAG = "--xla_cpu_experimental_ynn_fusion_type"
_COUNT_FLAG = "--xla_force_host_platform_device_count"
_OWN_FLAGS = (_DEADLOCK_FLAG, _FUSION_FLAG, _COUNT_FLAG)
_READABLE_FLAGS = "GPBENCH_READABLE_XLA_FLAGS"  # variable with flags that XLA has read, for the processes of this one
# With "cuda" alone JAX fails by an assertion where there is no GPU; `require_gpu` says it better.
_PLATFORMS = {"cpu": "cpu", "gpu": "cuda,cpu"}
_ARITHMETIC = {
    "jax_enable_x64": True,
    "jax_default_matmul_precision": "highest",
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_default_prng_impl": "threefry2x32",
    "jax_threefry_partitionable": True,
    "jax_random_seed_offset": 0,
    "jax_high_dynamic_range_gumbel": False,
    "jax_disable_jit": False,
    "jax_transfer_guard": "allow",
}
"""Options of JAX that change the numbers of a run or stop it, each with the value that every record was made with."""
_INEXACT = re.compile(
    r"--(\w*(?:fast_math(?!_honor)|fast_min_max|alg_dot_bf16|bf16_\dway_gemm|fp_conversions)\w*)(?:=(\S*))?"
)
"""Flags of XLA that make its arithmetic less exact."""

_settings: tuple[str | None, float | None, int] | None = None
"""Device, share of memory and number of devices of the last `configure` before JAX was imported; None without one."""


def configure(
    *, device: str | None = None, memory_fraction: float | None = None, devices: int = 1, cores: int | None = None
) -> None:
    """Set up this process for JAX; call it before anything imports JAX.

    float64 is available: float32 runs ask for their dtype where it matters, and their products are then float32 and not
    a GPU's shorter TF32; `fix_arithmetic` makes sure of that whatever the environment says.  Compiled programs are kept
    from process to process in `paths.cache_dir()`, small and quick ones too.

    Args:
        device: "cpu", "gpu", or None for the best there is.
        memory_fraction: Share of a GPU's memory to take at the start; None leaves JAX's default, 0.75.
        devices: Number of the run's devices in this process, to make as many of the CPU.
        cores: Number of the available cores that this process keeps; None is all.

    Raises:
        ConfigError: Another device; XLA_FLAGS that cannot be extended.
    """
    global _settings
    if "jax" not in sys.modules:
        _settings = (device, memory_fraction, devices)
    if cores is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    _add_flag(_DEADLOCK_FLAG, "false")
    _add_flag(_FUSION_FLAG, "individual_dot")
    if devices > 1:
        _add_flag(_COUNT_FLAG, str(devices))
    settings = {
        "JAX_ENABLE_X64": "true",
        "JAX_DEFAULT_MATMUL_PRECISION": "highest",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        # Factorisations on the CPU: OpenBLAS's threads wait for each other by spinning, and XLA has threads already.
        # Measured for steps of sep with M=200 on two cores: 6 ms with one thread, 6.5 with two, 20 to 100 with two
        # where another process ran too.
        "OPENBLAS_NUM_THREADS": "1",
    }
    if device is not None:
        if device not in _PLATFORMS:
            raise ConfigError(f"run.device={device}: a device is one of {', '.join(_PLATFORMS)}")
        os.environ["JAX_PLATFORMS"] = _PLATFORMS[device]  # asked for on the command line: stronger than the environment
    if memory_fraction is not None:
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(memory_fraction)
    for name, value in {**settings, **_cache()}.items():
        os.environ.setdefault(name, value)


def _cache() -> dict[str, str]:
    """The settings of the cache of compiled programs: none where there are some, and no cache where it has no place."""
    if {"JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"} & os.environ.keys():
        return {}
    folder, reason = paths.cache_dir() / "xla", "no permission to write"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return {"JAX_COMPILATION_CACHE_DIR": str(folder)}
    except OSError as error:
        reason = error.strerror or str(error)
    hint = "every process compiles anew; name another folder with GPBENCH_CACHE"
    print(f"gpbench: warning: {folder}: {reason}: {hint}", file=sys.stderr)
    return {"JAX_ENABLE_COMPILATION_CACHE": "false"}


def can_configure(*, device: str | None = None, memory_fraction: float | None = None, devices: int = 1) -> bool:
    """Returns true if JAX has, or can still get, these settings in this process: they are made before its import.

    Args:
        device: As for `configure`.
        memory_fraction: As for `configure`.
        devices: As for `configure`.
    """
    return "jax" not in sys.modules or _settings == (device, memory_fraction, devices)


def import_jax() -> None:
    """Imports JAX, after a look at XLA_FLAGS: XLA ends a process with flags that it cannot read.

    Raises:
        ConfigError: The environment has a setting or a flag that JAX or XLA cannot read.
    """
    flags = " ".join(flag for flag in _flags().split() if not flag.startswith(_OWN_FLAGS))
    if flags and flags != os.environ.get(_READABLE_FLAGS) and "jax" not in sys.modules:
        # in a process of its own, which may end so, and takes a fifth of a second: once for all jobs of a sweep
        command = [sys.executable, "-c", "from jaxlib import xla_client; xla_client.CompileOptions()"]
        printed = subprocess.run(command, capture_output=True, text=True).stderr
        if fault := re.search(r"(Unknown flags?|Couldn't|Could not open) .*", printed):
            raise ConfigError(f"XLA_FLAGS={flags}: {fault[0].strip('.')}; correct them, or leave them out")
        os.environ[_READABLE_FLAGS] = flags
    try:
        import jax  # noqa: F401
    except ValueError as error:
        raise ConfigError(f"JAX cannot read its settings: {error}; correct the variable, or unset it") from error


def start_backend() -> None:
    """Starts JAX's backend.

    Raises:
        ConfigError: It cannot start, as where JAX_PLATFORMS names a platform that is not here.
    """
    import jax

    try:
        jax.devices()
    except (AssertionError, RuntimeError) as error:
        reason = str(error).partition("\n")[0] or "there is none"
        names = os.environ.get("JAX_PLATFORMS", "")
        raise ConfigError(f"JAX_PLATFORMS={names}: JAX finds no such device ({reason}); set it to cpu") from error


def require_float64(device: str | None = None) -> None:
    """Sets this process up and imports JAX; where somebody else has imported it, its settings stay theirs.

    Args:
        device: "cpu", "gpu", or None for the best there is.

    Raises:
        ConfigError: JAX was imported without 64-bit types; XLA_FLAGS as for `fix_arithmetic`.
    """
    is_first = "jax" not in sys.modules
    configure(device=device)
    import_jax()
    import jax

    if is_first:
        fix_arithmetic()
    elif not jax.config.read("jax_enable_x64"):
        raise ConfigError(
            "JAX was imported without 64-bit types: set JAX_ENABLE_X64=true, or call"
            " jax.config.update('jax_enable_x64', True)"
        )


def fix_arithmetic() -> None:
    """Gives JAX the arithmetic that records stand for, whoever imported it and with whatever environment.

    Raises:
        ConfigError: XLA_FLAGS or NVIDIA_TF32_OVERRIDE make it less exact, which cannot be undone in this process.
    """
    import jax

    flags = _INEXACT.findall(os.environ.get("XLA_FLAGS", ""))
    faults = [f"XLA_FLAGS has --{flag}" for flag, value in flags if value.lower() not in ("false", "0")]
    if os.environ.get("NVIDIA_TF32_OVERRIDE", "0") != "0":
        faults.append("NVIDIA_TF32_OVERRIDE is set")
    if faults:
        raise ConfigError(f"{faults[0]}: numbers would be less exact than records state; leave it out")
    for option, value in _ARITHMETIC.items():
        if getattr(jax.config, option, value) != value:  # an option that this JAX does not have changes nothing
            jax.config.update(option, value)


def _flags() -> str:
    return os.environ.get("XLA_FLAGS", "").strip()


def _add_flag(name: str, value: str) -> None:
    flags = _flags()
    if flags and not flags.startswith("-"):
        raise ConfigError(f"XLA_FLAGS={flags}: write the flags themselves, not the name of a file with them")
    if name not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {name}={value}".strip()


def peers() -> tuple[str, int, int] | None:
    """Processes of this run, from the variable GPBENCH_PEERS=HOST:PORT,INDEX,NUMBER.

    Returns:
        Address of the first process, index of this one, and their number; None where the variable is not set.

    Raises:
        ConfigError: It cannot be read.
    """
    if not (setting := os.environ.get("GPBENCH_PEERS")):
        return None
    address, *numbers = setting.split(",")
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers) or ":" not in address:
        raise ConfigError(f"GPBENCH_PEERS={setting}: must be HOST:PORT,INDEX,NUMBER, as in node1:7777,0,2")
    return address, int(numbers[0]), int(numbers[1])


def join() -> None:
    """Joins the processes that compute together: those of GPBENCH_PEERS, else those of a cluster.

    JAX detects the latter under Slurm, Open MPI and Kubernetes.  Call it after `configure` and before anything else of
    JAX.

    Raises:
        ConfigError: There are none to join.
    """
    import jax

    jax.config.update("jax_enable_preemption_service", False)  # it would take SIGTERM for itself
    try:
        if processes := peers():
            address, index, number = processes
            jax.distributed.initialize(
                address,
                number,
                index,
                cluster_detection_method="deactivate",
                heartbeat_timeout_seconds=30,
                coordinator_bind_address=address if address.startswith("127.") else None,
            )
        else:
            jax.distributed.initialize(heartbeat_timeout_seconds=30)
    except (ValueError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"cannot join the other processes of this run ({reason}): start it under Slurm, Open MPI or"
            " Kubernetes, or set GPBENCH_PEERS=HOST:PORT,INDEX,NUMBER for each"
        ) from error


def rank_and_count() -> tuple[int, int]:
    """Index of this process among those that joined, from 0, and their number."""
    import jax

    return jax.process_index(), jax.process_count()


def is_of_jax(error: Exception) -> bool:
    """Recognises errors of JAX's runtime, such as a lost connection."""
    import jax

    return isinstance(error, jax.errors.JaxRuntimeError)


def devices_here(count: int) -> int:
    """Number of a run's devices on this machine.

    Args:
        count: Number of its devices: all are here, unless its processes are on several machines.
    """
    import jax

    alone = jax.process_count() == 1 or ((processes := peers()) is not None and processes[0].startswith("127."))
    return count if alone else jax.local_device_count()


def require_gpu() -> None:
    """Checks that JAX computes on a GPU.  Starts JAX's backend.

    Raises:
        ConfigError: It cannot.
    """
    import jax

    try:
        has_gpu, reason = jax.devices()[0].platform != "cpu", "it finds none"
    except RuntimeError as error:
        has_gpu, reason = False, str(error)
    if not has_gpu:
        raise ConfigError(f"run.device=gpu: JAX cannot use a GPU here ({reason}); `gpbench doctor` says what it sees")


def device_name() -> str:
    """Name of the device that JAX computes on, such as "NVIDIA H200" or the CPU's model.  Starts JAX's backend."""
    import jax

    device = jax.devices()[0]
    return _cpu_model() if device.platform == "cpu" else str(device.device_kind)


def _cpu_model() -> str:
    return memory.proc_field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
