"""What the processes of peers share: the problem from a file, and a loop that scores test rows every few steps.

Run as `python _peer_gpytorch.py PROBLEM.json`; the last line of the output is JSON with seconds by part and the points.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_FIRST = time.time()


def centres(X, m: int):
    """Cluster centres of at most 20,000 rows; the first rows without scikit-learn."""
    try:
        from sklearn.cluster import MiniBatchKMeans
    except ImportError:
        return X[:m].copy()
    return MiniBatchKMeans(m, random_state=0, n_init=1).fit(X[:20_000]).cluster_centers_


def run(prepare: Callable[[dict, dict], tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]]) -> None:
    """Trains a peer.

    Args:
        prepare: Makes from the problem's settings and arrays three functions: one step; predictions of the test rows,
            means in regression, else probabilities of the class 1; and one that waits until the device has done it all.
    """
    import numpy as np

    problem = json.loads(Path(sys.argv[1]).read_text())
    clock = {"start": time.time() - problem["begun"]}

    def timed(part: str, function: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        value = function()
        clock[part] = clock.get(part, 0.0) + time.perf_counter() - started
        return value

    arrays = timed("data", lambda: dict(np.load(problem["arrays"])))
    step, predict, wait = timed("init", lambda: prepare(problem, arrays))
    timed("compile", lambda: (step(), wait()))
    points, y, is_binary = [], arrays["y_test"], problem["binary"]
    for done in range(1, problem["steps"] + 1):
        timed("train", step)
        if done % problem["every"] and done != problem["steps"]:
            continue
        timed("train", wait)
        predictions = np.asarray(timed("evaluate", predict), float)
        if is_binary:
            of_label = np.where(y > 0, predictions, 1 - predictions)
            quality = float(-np.log(np.clip(of_label, 1e-12, 1.0)).mean())
        else:
            quality = float(np.sqrt(np.mean((predictions - y) ** 2)))
        points.append([clock["train"], quality])
    print(json.dumps({"seconds": clock, "points": points}))
