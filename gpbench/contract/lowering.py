"""Checks that a method's programs suit an accelerator, which need none: JAX lowers for any platform on a CPU."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
from jax._src import core  # an evaluation cannot be watched through JAX's public names
from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, Jaxpr

from gpbench.config.build import build_method
from gpbench.contract.findings import ROWS, Finding, finding, startable
from gpbench.contract.problems import CLASSES, Problem, require
from gpbench.methods.protocols import HasObjective
from gpbench.train.group import Fit, Group
from gpbench.train.programs import Programs

_SCOPE = "needs_float64"
"""Name scope (`jax.named_scope`) of computations that are in float64 whatever the precision of the data."""
_HOST = ("callback", "debug_print", "infeed", "outfeed")
"""Parts of the names of JAX's primitives that wait for the host."""
_SHOWN = 3  # lines of code that a reason names
source_info_util.register_exclusion(__file__)  # the recorder's own lines


def examine_platform(
    cfg: Mapping[str, Any], platform: str, rows: int | None = None, tasks: Collection[str] = tuple(CLASSES)
) -> Iterator[Finding]:
    """Yields a finding for each program of a method, in float32 and in float64, of two splits side by side."""
    method = build_method(cfg)
    for task in (task for task in CLASSES if task in method.tasks and task in tasks):
        count = rows or startable(method, task, ROWS).rows
        for precision in ("float32", "float64"):
            problem = Problem(method, task, count, precision)
            for name, program in _programs(problem).items():
                claim = f"{name} in {precision} lowers for {platform}"
                yield finding(task, _require_lowering, program, platform, precision, claim=claim)


def _programs(problem: Problem) -> dict[str, Callable[[], tuple[Callable, tuple]]]:
    """Functions that give a program and its arguments, by the program's name."""
    method, loop = problem.method, _Uncompiled(problem.method)

    def begun() -> Fit:
        return Fit(jax.jit(partial(jax.tree.map, lambda *leaves: jnp.stack(leaves)))(*problem.first))

    known = {
        "init": lambda: _recorded(problem),
        "step": lambda: loop.program(lambda: loop.advance(problem.both, begun(), 3)),
        "predict": lambda: loop.program(lambda: loop.predict(problem.both, begun())),
    }
    if isinstance(method, HasObjective):
        known["objective"] = lambda: (method.objective, (problem.first[0], problem.data()))
    return known


class _Caught(Exception):
    """A program of the loop, and its arguments, in the moment of its compilation."""


class _Uncompiled(Programs):
    """The loop's programs as functions."""

    def program(self, run: Callable[[], Any]) -> tuple[Callable, tuple]:
        """The function that a part of the loop would compile first, and its arguments."""
        try:
            run()
        except _Caught as caught:
            return caught.args[0], caught.args[1]
        raise AssertionError("it compiles nothing")

    def _program(self, body: partial, group: Group, args: tuple, run: Fit) -> Any:
        raise _Caught(body, args)


class _Recorder(core.EvalTrace):
    """An evaluation that keeps the primitives it runs, compiled functions among them, with their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Callable, tuple]] = []

    def process_primitive(self, primitive: Any, args: Any, params: Any, /) -> Any:
        source = source_info_util.current()

        def again(*args: Any) -> Any:
            with source_info_util.user_context(source.traceback, name_stack=source.name_stack):
                return primitive.bind(*args, **params)

        self.calls.append((again, tuple(args)))
        return super().process_primitive(primitive, args, params)


def _recorded(problem: Problem) -> tuple[Callable, tuple]:
    """A program of all that JAX computes in `init`, which may itself use the host in between."""
    with core.set_current_trace(recorder := _Recorder()):
        problem.start()

    functions, arguments = zip(*recorder.calls)
    # what it returned nothing of would not be lowered
    return lambda *arguments: [call(*args) for call, args in zip(functions, arguments)], arguments


class _Equation(NamedTuple):
    """An equation of a program, or of one inside it."""

    of_jax: Any
    scope: str
    outer: tuple[Any, ...]
    """The equations that it is inside."""

    @property
    def name(self) -> str:
        """Name of the foreign function or of the primitive that it calls."""
        return str(self.of_jax.params.get("target_name", self.of_jax.primitive.name))

    @property
    def is_wide(self) -> bool:
        """Whether it makes, and not only carries, an undeclared float64 array of more than a number for each split."""
        if _SCOPE in self.scope or any(_programs_in(self.of_jax)):
            return False
        results = (variable.aval for variable in self.of_jax.outvars)
        return any(getattr(aval, "dtype", None) == jnp.float64 and aval.size > 2 for aval in results)

    def __str__(self) -> str:
        lines = (source_info_util.summarize(equation.source_info) for equation in (self.of_jax, *self.outer))
        line = next(filter(None, lines), "a place that JAX does not know")
        return f"{self.name} at {line.rpartition('site-packages/')[2]}"


def _require_lowering(program: Callable[[], tuple[Callable, tuple]], platform: str, precision: str) -> None:
    """Raises Broken, or JAX's own error, where a program does not suit the platform."""
    with mock.patch.object(jax, "default_backend", lambda: platform):
        function, arguments = program()
        traced = jax.jit(function).trace(*arguments)
        _require_portable(traced.jaxpr.jaxpr, precision)
        traced.lower(lowering_platforms=(platform,))


def _require_portable(program: Jaxpr, precision: str) -> None:
    """Raises Broken for a program that waits for the host, calls foreign code, or computes in float64 for float32."""
    equations = list(_equations(program))
    hint = f"use the dtype of the data, or jax.named_scope({_SCOPE!r})"
    faults = {
        "it waits for the host: ": [e for e in equations if any(word in e.of_jax.primitive.name for word in _HOST)],
        "it calls foreign code: ": [e for e in equations if e.of_jax.primitive.name.startswith("ffi_call")],
        f"it computes in float64 ({hint}): ": [e for e in equations if precision == "float32" and e.is_wide],
    }
    reasons = []
    for fault, places in ((fault, places) for fault, places in faults.items() if places):
        lines = list(dict.fromkeys(map(str, places)))  # each line of code once
        more = [f"{len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        reasons.append(fault + ", ".join([*lines[:_SHOWN], *more]))
    require(not reasons, "; ".join(reasons))


def _equations(jaxpr: Jaxpr, scope: str = "", outer: tuple[Any, ...] = ()) -> Iterator[_Equation]:
    """All equations of a program and of those inside it."""
    for equation in jaxpr.eqns:
        inner = f"{scope}/{equation.source_info.name_stack}"
        yield _Equation(equation, inner, outer)
        for program in _programs_in(equation):
            yield from _equations(program, inner, (equation, *outer))


def _programs_in(equation: Any) -> list[Jaxpr]:
    """Programs that an equation runs: a loop's body, a compiled function."""
    is_program = lambda value: isinstance(value, Jaxpr | ClosedJaxpr)
    values = jax.tree.leaves(list(equation.params.values()), is_leaf=is_program)
    return [value.jaxpr if isinstance(value, ClosedJaxpr) else value for value in values if is_program(value)]
