"""Settings of JAX, made before it is imported and never over the user's, the arithmetic that records stand for (options
of JAX, and flags of XLA, which reads them once in a process), and facts about the machine."""

import os
import platform
import re
import subprocess
import sys
from typing import Any

from gpbench import paths
from gpbench.core import memory
from gpbench.errors import ConfigError, require
from gpbench.log import warn

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


def fix_arithmetic() -> None:
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


# With "cuda" alone JAX fails by an assertion where there is no GPU; `start` says it better.
_PLATFORMS = {"cpu": "cpu", "gpu": "cuda,cpu"}
_settings: tuple[str | None, float | None, int] | None = None
"""Device, share of memory and number of devices of the last `configure` before JAX was imported; None without one."""

_is_forked = False  # whether this process was forked from one in which JAX computes


def _notice_fork() -> None:
    global _is_forked
    _is_forked = bool(getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_notice_fork)


def refuse_fork() -> None:
    """Raises ConfigError where this process was forked from one in which JAX computes, whose threads it lacks."""
    mend = "use multiprocessing.get_context('spawn'), or start the processes before the first run or fit"
    require(not _is_forked, f"this process was forked after JAX had started, and would hang: {mend}", ConfigError)


def configure(
    *, device: str | None = None, memory_fraction: float | None = None, devices: int = 1, cores: int | None = None
) -> None:
    """Sets up this process for JAX, before anything imports it.  float64 is available, and float32 products are not a
    GPU's shorter TF32.  Compiled programs are kept in `paths.cache_dir()`, small and quick ones too."""
    global _settings
    refuse_fork()
    if "jax" not in sys.modules:
        _settings = (device, memory_fraction, devices)
    if available := available_cores():
        if numbers := os.environ.get("GPBENCH_CORES"):  # a sweep's job, and one of several processes, has its own
            os.sched_setaffinity(0, map(int, numbers.split(",")))
        elif cores is not None:
            require_cores(cores)
            os.sched_setaffinity(0, available[:cores])
    add_flags(devices)
    settings = {
        "JAX_ENABLE_X64": "true",
        "JAX_DEFAULT_MATMUL_PRECISION": "highest",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        # Without the Python frames of every operation, a program is smaller from its tracing to its entry in the cache.
        "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",
        # Factorisations on the CPU: OpenBLAS's threads wait for each other by spinning, and XLA has threads already.
        # Measured for steps of sep with M=200 on two cores: 6 ms with one thread, 6.5 with two, 20 to 100 with two
        # where another process ran too.
        "OPENBLAS_NUM_THREADS": "1",
    }
    if device is not None:
        choices = ", ".join(_PLATFORMS)
        require(device in _PLATFORMS, f"run.device={device}: a device is one of {choices}", ConfigError)
        os.environ["JAX_PLATFORMS"] = _PLATFORMS[device]  # asked for on the command line: stronger than the environment
    if memory_fraction is not None:
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(memory_fraction)
    for name, value in {**settings, **_cache()}.items():
        os.environ.setdefault(name, value)


def available_cores() -> list[int]:
    """The numbers of the cores that this process may use; [] where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def require_cores(cores: int | None) -> None:
    """Raises ConfigError where each process of a run is to have more cores than this process may use."""
    if cores is not None and cores > (count := len(available_cores()) or cores):
        raise ConfigError(f"run.cores={cores}: this process may use {count} cores: write run.cores={count}")


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
    warn(f"{folder}: {reason}: {hint}")
    return {"JAX_ENABLE_COMPILATION_CACHE": "false"}


def can_configure(device: str | None, devices: int) -> bool:
    """True if JAX has, or can still get, these settings in this process: they are made before its import."""
    return "jax" not in sys.modules or _settings == (device, None, devices)


def start(device: str | None = None, *, joins: bool = False) -> tuple[int, int]:
    """Imports JAX and starts its backend, after `configure`; index and number of this process among those that join."""
    import_jax()
    import jax

    if joins:
        join()
    fix_arithmetic()
    try:
        devices = jax.devices()
        reason = "it finds none" if device == "gpu" and devices[0].platform == "cpu" else ""
    except (AssertionError, RuntimeError) as error:
        reason = str(error).partition("\n")[0] or "there is none"
        names = os.environ.get("JAX_PLATFORMS", "")
        fault = f"JAX_PLATFORMS={names}: JAX finds no such device ({reason}); set it to cpu"
        require(device == "gpu", fault, ConfigError)
    fact = f"JAX cannot use a GPU here ({reason}); `gpbench doctor` says what it sees"
    require(not reason, f"run.device=gpu: {fact}", ConfigError)
    return (jax.process_index(), jax.process_count()) if joins else (0, 1)


def import_jax() -> None:
    """Imports JAX, after a look at XLA_FLAGS."""
    if "jax" not in sys.modules:
        check_flags()
    try:
        import jax  # noqa: F401
    except ValueError as error:
        raise ConfigError(f"JAX cannot read its settings: {error}; correct the variable, or unset it") from error


def require_float64(device: str | None = None) -> None:
    """Sets this process up and imports JAX; where somebody else has imported it, its settings stay theirs."""
    is_first = "jax" not in sys.modules
    configure(device=device)
    if is_first:
        start(device)
    mend = "set JAX_ENABLE_X64=true, or call jax.config.update('jax_enable_x64', True)"
    is_wide = sys.modules["jax"].config.read("jax_enable_x64")
    require(is_wide, f"JAX was imported without 64-bit types: {mend}", ConfigError)


def peers() -> tuple[str, int, int] | None:
    """Address, index and number of GPBENCH_PEERS=HOST:PORT,INDEX,NUMBER, by which processes of a run join, if set."""
    if not (setting := os.environ.get("GPBENCH_PEERS")):
        return None
    match = re.fullmatch(r"([^,]*:[^,]*),(\d+),(\d+)", setting)
    if match is None:
        raise ConfigError(f"GPBENCH_PEERS={setting}: must be HOST:PORT,INDEX,NUMBER, as in node1:7777,0,2")
    return match[1], int(match[2]), int(match[3])


def join() -> None:
    """Joins the processes of GPBENCH_PEERS or of a cluster, after `configure` and before anything else of JAX."""
    import jax

    jax.config.update("jax_enable_preemption_service", False)  # it would take SIGTERM for itself
    places: dict[str, Any] = {}
    if processes := peers():
        places = dict(zip(("coordinator_address", "process_id", "num_processes"), processes))
        places["cluster_detection_method"] = "deactivate"
        places["coordinator_bind_address"] = processes[0] if processes[0].startswith("127.") else None
    try:
        jax.distributed.initialize(heartbeat_timeout_seconds=30, **places)
    except (ValueError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        mend = "start it under Slurm, Open MPI or Kubernetes, or set GPBENCH_PEERS=HOST:PORT,INDEX,NUMBER for each"
        raise ConfigError(f"cannot join the other processes of this run ({reason}): {mend}") from error


def is_of_jax(error: Exception) -> bool:
    """Recognises errors of JAX's runtime, such as a lost connection."""
    import jax

    return isinstance(error, jax.errors.JaxRuntimeError)


def described(error: BaseException) -> str:
    """An exception in a line, with the remedy in the place of JAX's explanations where its tracing is the reason."""
    import jax

    text = " ".join(str(error).split())[:300].rstrip(".")
    if isinstance(error, jax.errors.TracerArrayConversionError):
        text = "NumPy cannot take arrays that JAX traces: use jax.numpy"
    elif isinstance(error, jax.errors.ConcretizationTypeError | jax.errors.TracerIntegerConversionError):
        text = "a number that JAX traces cannot decide an `if`, a loop or a size: use jnp.where or jax.lax"
    return f"{type(error).__name__}: {text}"


def devices_here(count: int) -> int:
    """Number of a run's devices on this machine."""
    import jax

    alone = jax.process_count() == 1 or ((processes := peers()) is not None and processes[0].startswith("127."))
    return count if alone else jax.local_device_count()


def device_name() -> str:
    """Name of the device that JAX computes on, such as "NVIDIA H200" or the CPU's model.  Starts JAX's backend."""
    import jax

    device = jax.devices()[0]
    if device.platform != "cpu":
        return str(device.device_kind)
    return memory.proc_field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
