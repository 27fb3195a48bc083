"""A setting for those methods of a sweep that have it."""

import pytest

from gpbench.config.compose import compose
from gpbench.errors import ConfigError
from gpbench.experiments.plan import plans


def test_an_optional_word_counts_where_the_method_has_its_key():
    plain, optional = (compose(["method=sep", f"{prefix}method.inducing=0.1"]) for prefix in ("", "optional."))
    assert plain == optional and optional["method"]["inducing"] == 0.1
    assert compose(["method=logistic", "optional.method.inducing=0.1"]) == compose(["method=logistic"])


def test_an_optional_key_that_no_method_has_is_a_mistake():
    with pytest.raises(ConfigError, match="no method has a key 'inducng'; did you mean inducing"):
        compose(["method=logistic", "optional.method.inducng=0.1"])
    with pytest.raises(ConfigError, match="`optional.` is for keys of the method"):
        compose(["optional.run.jobs=2"])


def test_a_sweep_names_the_methods_that_lack_a_key_and_offers_the_word():
    jobs = [[f"method={name}", "method.inducing=0.1", "dataset=wdbc"] for name in ("sep", "logistic", "constant")]
    with pytest.raises(
        ConfigError, match="^method.inducing=0.1: logistic, constant have no such key; write optional.m"
    ):
        plans(jobs)
    sep, logistic, _ = plans([[words[0], f"optional.{words[1]}", words[2]] for words in jobs])
    assert sep.cfg["method"]["inducing"] == 0.1 and "inducing" not in logistic.cfg["method"]
