"""All checks of a method, one finding for each claim and task."""

import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gpbench import registry, runtime
from gpbench.config.build import build_method
from gpbench.contract.checks import CHECKS
from gpbench.contract.problems import CLASSES, Broken, Doubtful, Problem
from gpbench.errors import ConfigError, GpbenchError
from gpbench.methods.base import Method

_STEPS = 6  # the most steps a method takes in a check

ROWS = (60, 250, 1200)
"""Training rows to try until `init` finds them enough for its settings."""


@dataclass(frozen=True)
class Finding:
    """One claim on one task: `verdict` is kept, broken or doubtful, and `reason` says what was observed."""

    task: str
    claim: str
    verdict: str
    reason: str = ""


def examine(
    cfg: Mapping[str, Any], rows: int | None = None, tasks: Collection[str] = tuple(CLASSES)
) -> Iterator[Finding]:
    """Yields the findings for a method; an exception in a check is a broken claim."""
    few = {key: min(cfg[key], _STEPS) for key in ("steps", "trial_steps") if key in cfg}
    method = build_method({**cfg, **few})
    family = registry.LIKELIHOODS.get(registry.read("likelihood", cfg.get("likelihood", "auto")).name)
    suitable = method.tasks if family is None else method.tasks.intersection(family.tasks)
    for task in (task for task in CLASSES if task in suitable and task in tasks):
        problem = startable(method, task, (rows,) if rows else ROWS)
        reasons: set[str] = set()
        for check in CHECKS:
            result = finding(task, check, problem)
            repeats = bool(result.reason) and result.reason in reasons
            reasons.add(result.reason)
            yield replace(result, reason="for the same reason") if repeats else result


def startable(method: Method, task: str, sizes: Sequence[int]) -> Problem:
    """The smallest of these on which the method can start, or else the last."""
    for rows in sizes:
        problem = Problem(method, task, rows)
        try:
            problem.start()
        except ConfigError:
            continue
        except (Exception, SystemExit):  # becomes a finding
            pass
        break
    return problem


def finding(task: str, check: Callable[..., None], *arguments: Any, claim: str = "") -> Finding:
    """What a check with these arguments finds about a claim, by default its docstring; an exception breaks it."""
    result = partial(Finding, task, claim or check.__doc__ or check.__name__)
    try:
        check(*arguments)
    except (Broken, Doubtful, GpbenchError) as error:
        return result("doubtful" if isinstance(error, Doubtful) else "broken", str(error))
    except (Exception, SystemExit) as error:
        # its position in the author's code: the last frame outside libraries and here
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
        frame = ([f for f in frames if "/gpbench/contract/" not in f.filename] or frames)[-1]
        name, _, text = runtime.described(error).partition(": ")
        return result("broken", f"{name} at {frame.filename}:{frame.lineno}: {text}")
    return result("kept")
