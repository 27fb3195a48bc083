"""Odd data end in metrics, in metrics with a doubt, in one line or in a divergence: never in absurd ones unsaid."""

import random
from pathlib import Path

import pytest
from odd_data import KINDS, SHAPES, Problem, end, is_absurd, small

from gpbench.train.programs import Programs

QUICK = {"linear": "regression", "gpr": "regression", "logistic": "binary", "sep": "binary"}
"""Methods of `make test`, for 40 problems; `ALL` have 9 each."""
ALL = sorted(file.stem for file in (Path(__file__).parents[2] / "conf" / "method").glob("*.yaml"))


def check(name: str, problems: list[Problem]) -> None:
    """Fails for a problem that ends in a traceback, in more than a line, or absurdly without a doubt."""
    method = small(name)
    programs = Programs(method)
    for problem in problems:
        status, values, doubts = end(method, programs, problem)
        assert "\n" not in status, problem
        if status == "done":
            assert doubts or not is_absurd(problem.task, values), (problem, values)


@pytest.mark.parametrize("name", QUICK)
def test_no_method_is_absurd_without_a_word(name):
    kinds = KINDS if name == "linear" else random.Random(name).sample(KINDS, 8 if name != "sep" else 2)
    check(name, [Problem(kind, QUICK[name]) for kind in kinds])


@pytest.mark.parametrize("name", ALL)
def test_no_method_is_absurd_on_any_kind_of_data(name):
    choice = random.Random(f"all {name}")
    task = choice.choice(sorted(small(name).tasks))
    rows, inputs = choice.choice(SHAPES)
    problems = [Problem(kind, task, rows, inputs, seed) for seed in range(3) for kind in KINDS]
    check(name, choice.sample(problems, 9))
