"""Number of arithmetic operations of a traced program: the same on every machine, unlike seconds."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

_MOVES = frozenset(
    (
        *("broadcast_in_dim", "concatenate", "convert_element_type", "copy", "copy_p", "device_put"),
        *("dynamic_slice", "dynamic_update_slice", "gather", "iota", "optimization_barrier", "pad"),
        *("random_unwrap", "random_wrap", "reshape", "rev", "scatter", "select_n", "slice", "split"),
        *("squeeze", "stop_gradient", "transpose"),
    )
)
"""Primitives that calculate nothing."""


def count_operations(program: ClosedJaxpr | Jaxpr) -> float:
    """Number of arithmetic operations of a traced program, additions and multiplications of matrix products alike.  The
    program is the `jaxpr` of `jax.jit(function).trace(*arguments)`.  An element-wise function is one operation an
    element, whatever its type; moving data is none.  Factorisations count by their leading term (G. Golub and C. Van
    Loan, Matrix Computations, 4th edition, sections 3.1, 4.2, 5.2 and 8.3).  A loop of a known length counts as often
    as it runs, one of unknown length once, and of branches the longest counts."""
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    return math.fsum(map(_operations, jaxpr.eqns))


def _operations(equation: JaxprEqn) -> float:
    name, params = equation.primitive.name, equation.params
    if name in _MOVES:
        return 0.0
    if name in _FORMULAS:
        return _FORMULAS[name](equation)
    if name == "cond":
        return max(map(count_operations, params["branches"]))
    bodies = [value for value in params.values() if isinstance(value, ClosedJaxpr | Jaxpr)]
    if bodies:
        return float(params["length"] if name == "scan" else 1) * math.fsum(map(count_operations, bodies))
    return float(max(map(_size, (*equation.invars, *equation.outvars)), default=0))


def _dot(equation: JaxprEqn) -> float:
    (contracted, _), _ = equation.params["dimension_numbers"]
    shape = _shape(equation.invars[0])
    return 2.0 * _size(equation.outvars[0]) * math.prod(shape[k] for k in contracted)


def _sort(equation: JaxprEqn) -> float:
    n = _shape(equation.invars[0])[equation.params["dimension"]]
    return _size(equation.invars[0]) * math.log2(max(n, 2))


def _scatter(equation: JaxprEqn) -> float:
    """One for each number that is added, however many there are to add to."""
    return float(_size(equation.invars[2]))


def _cubic(factor: float) -> Callable[[JaxprEqn], float]:
    """`factor` n³ for each matrix of n columns."""
    return lambda equation: factor * _size(equation.invars[0]) * _shape(equation.invars[0])[-1]


def _solve(equation: JaxprEqn) -> float:
    """n² for each right-hand side of a triangular matrix."""
    return float(_size(equation.invars[1])) * _shape(equation.invars[0])[-1]


_FORMULAS: Mapping[str, Callable[[JaxprEqn], float]] = {
    "dot_general": _dot,
    "sort": _sort,
    "scatter-add": _scatter,
    "scatter-mul": _scatter,
    "cholesky": _cubic(1 / 3),
    "triangular_solve": _solve,
    "lu": _cubic(2 / 3),
    "eigh": _cubic(9.0),
    "geqrf": _cubic(2.0),
    "householder_product": _cubic(2.0),
}


def _size(variable: Any) -> int:
    return math.prod(_shape(variable))


def _shape(variable: Any) -> tuple[int, ...]:
    return getattr(variable.aval, "shape", ())
