"""Configurations put together from single choices are those that Hydra composes for all of them."""

import json

import pytest

from gpbench.config import choices, compose
from gpbench.config.compose import hydra
from gpbench.errors import ConfigError

JOBS = [
    [],
    ["dataset=pima", "method=svi", "protocol=hl2016"],
    ["dataset=boston", "method=svi", "split=[0,3]", "method.inducing=20", "run.trace_every=5"],
    ["dataset=boston", "method=dgp", "method.hidden=[2,3]", "protocol.steps=7"],  # others refer to this key
    ["method=qsgp", "dataset=sinc", "method.optimiser=null", "++method.rate=0.5"],
    ["method=svi", "dataset=sinc", "method.kernel=matern32", "seed=3"],
]


def test_the_quick_way_and_hydras_own_agree(monkeypatch):
    def composed():
        compose._our_choices.cache_clear()
        with hydra([]) as composer:
            return [json.dumps(composer.compose(job)) for job in JOBS]

    quick = composed()
    monkeypatch.setattr(choices.Choices, "_together", lambda *_: None)
    monkeypatch.setattr(choices.Chosen, "with_values", lambda *_: None)
    assert quick == composed()


WRONG = ["method.indcing=3", "run.no=1", "protocol=none", "split=0,1", "method.inducing=${no}"]


@pytest.mark.parametrize("word", WRONG)
def test_mistakes_are_refused_beside_several_choices(word):
    with pytest.raises(ConfigError), hydra([]) as composer:
        composer.compose(["dataset=pima", "method=svi", word])
