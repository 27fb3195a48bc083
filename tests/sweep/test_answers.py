"""The outcome of a job, judged from how its process ended."""

import pytest

from gpbench.sweep.job import Ended


@pytest.mark.parametrize("printed", ["", "hello", "{}", "[1]", "{'a': 1}"])
def test_a_process_without_an_answer_is_a_failed_job(printed):
    outcome = Ended(0, "", printed, 1.0).judged([], stopping=False)
    assert outcome.status == "failed" and "ended without an answer" in outcome.text
