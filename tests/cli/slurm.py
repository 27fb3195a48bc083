"""A real Slurm of one node on loopback, in a folder of its own: munged, slurmctld and slurmd of this user."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue")

_CONF = """
ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={port_of_node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MpiDefault=none
KillWait=10
MaxArraySize=4
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])
    return [name for name in PROGRAMS if not shutil.which(name, path=path)]


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """A running Slurm; yields what its commands must have in their environment."""
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    folder.chmod(0o755)  # munged refuses folders that others may write
    conf = folder / "slurm.conf"
    host = socket.gethostname().partition(".")[0]
    fields = {"user": getpass.getuser(), "port": _free_port(), "port_of_node": _free_port(), "cores": os.cpu_count()}
    conf.write_text(_CONF.format(folder=folder, host=host, **fields))
    environment = {"SLURM_CONF": str(conf), "PATH": os.environ["PATH"]}
    munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    munged = ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *munge]
    commands = [munged, ["slurmctld", "-D", "-c"], ["slurmd", "-D"]]
    started: list[subprocess.Popen] = []
    try:
        for command in commands:
            with open(folder / f"{command[0]}.out", "wb") as out:
                started.append(subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **environment}))
            _when(lambda: (folder / "munge.socket").exists(), folder)
        _when(lambda: "idle" in _output_of(["sinfo", "--noheader", "--format=%t"], environment), folder)
        yield environment
    finally:
        subprocess.run(["scancel", "--full", f"--user={fields['user']}"], env={**os.environ, **environment})
        time.sleep(1)
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _output_of(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True).stdout


def _when(condition, folder: Path) -> None:
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError("\n".join(path.read_text(errors="replace")[-2000:] for path in folder.glob("*.log")))
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
