"""The outcome of a job, judged from how its process ended."""

import pytest
from samples import sample

from gpbench.sweep.job import Ended, recorded_before


@pytest.mark.parametrize("printed", ["", "hello", "{}", "[1]", "{'a': 1}"])
def test_a_process_without_an_answer_is_a_failed_job(printed):
    outcome = Ended(0, "", printed, 1.0).judged([], stopping=False)
    assert outcome.status == "failed" and "ended without an answer" in outcome.text


def test_a_split_that_is_not_finite_is_left_out_of_the_mean():
    records = [sample(str(k), split=k, metrics={"nll": k or None}) for k in range(3)]
    assert recorded_before([], records).text == "nll 1.5, 1 run not finite"
    assert recorded_before([], records[:1]).text == "nll 1 run not finite"
