"""A training job without JAX: its `method.fate` says how it ends and `method.seconds` how long it takes."""

import errno
import hashlib
import os
import signal
import time


def run_job(cfg, defaults, *, store, progress, stop):
    from gpbench.errors import ConfigError, Stopped

    method = cfg["method"]
    splits = range(3) if cfg["split"] == "all" else cfg["split"] if isinstance(cfg["split"], list) else [cfg["split"]]
    setting = ",".join(f"{k}={v}" for k, v in method.items() if v != defaults["method"][k])
    records = []
    for split in splits:
        id = hashlib.sha256(f"{method} {cfg['dataset']} {split} {cfg['seed']}".encode()).hexdigest()[:16]
        if (record := store.get(id)) is None:
            progress.begin("fake", 10, [split])
            end = time.monotonic() + method["seconds"]
            while time.monotonic() < end:
                if stop.reason and method["fate"] != "deaf":
                    raise Stopped(f"{stop.reason}: stopped at a checkpoint")
                time.sleep(0.01)
            progress.end()
            if method["fate"] == "error":
                raise ConfigError("fated to fail")
            if method["fate"] == "bug":
                raise ValueError("a bug of ours")
            if method["fate"] == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if method["fate"] == "full":
                raise OSError(errno.ENOSPC, "No space left on device", "/some/file")
            record = {
                "id": id, "status": method["fate"], "message": "NaN at step 3", "dataset": cfg["dataset"]["name"],
                "method": "fake", "setting": setting, "protocol": "plain", "split": split, "seed": cfg["seed"],
                "metrics": {"nll": 0.25 * (split + 1)}, "seconds": {"compile": 1.0, "train": 2.0, "evaluate": 0.5},
            }  # fmt: skip
            store.write(record, cfg, {})
        records.append(record)
    return records
