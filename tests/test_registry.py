"""The tables of kernels and likelihoods are what the classes declare, and custom ones are named like built-in ones."""

import importlib.metadata

import pytest

from gpbench import plugins, registry
from gpbench.core.kernels import kernel_spec
from gpbench.core.likelihoods import likelihood_spec
from gpbench.errors import ConfigError


def test_the_options_and_tasks_of_the_table_are_those_of_the_class():
    for kind, table in registry.KINDS.items():
        for name, entry in table.items():
            cls = registry.load(kind, name)
            assert dict(entry.options) == registry.options_of(cls), name
            assert set(entry.tasks) == set(getattr(cls, "tasks", ())), name
            assert kind == "likelihood" or cls.family == name


def test_files_and_entry_points_name_kernels_and_likelihoods(tmp_path, monkeypatch):
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "mine.yaml").write_text("_target_: mine.Kernel\nperiod: 2.0\n")
    own = {"_target_": "mine.Kernel", "period": 2.0}
    assert registry.expand("kernel", "mine", [tmp_path]) == own
    assert registry.expand("kernel", {"mine": {"period": 3.0}}, [tmp_path]) == {**own, "period": 3.0}
    assert registry.expand("kernel", {"sum": ["mine", "linear"]}, [tmp_path]) == {"sum": [own, "linear"]}
    assert registry.expand("kernel", "linear", [tmp_path]) == "linear"
    (tmp_path / "kernel" / "linear.yaml").write_text("_target_: mine.Kernel\n")
    with pytest.raises(ConfigError, match="the name linear is built in"):
        registry.expand("kernel", "linear", [tmp_path])
    (tmp_path / "kernel" / "mine.yaml").write_text("period: 2.0\n")
    with pytest.raises(ConfigError, match="must be a mapping with a line `_target_"):
        registry.expand("kernel", "mine", [tmp_path])
    points = {"gpbench.likelihoods": [importlib.metadata.EntryPoint("mine", "mine:Likelihood", "gpbench.likelihoods")]}
    monkeypatch.setattr(plugins, "points", lambda group: points.get(group, []))
    assert registry.expand("likelihood", "mine") == {"_target_": "mine.Likelihood"}
    assert registry.expand("kernel", "mine") == "mine"


@pytest.mark.parametrize(
    ("parse", "value", "message"),
    [
        (kernel_spec, {"_target_": "Kernel"}, "write MODULE.NAME"),
        (kernel_spec, {"_target_": "nowhere.Kernel"}, "cannot import 'nowhere.Kernel'"),
        (kernel_spec, {"_target_": "math.pi"}, "math.pi may not be used: a target is of gpbench"),
        (kernel_spec, {"_target_": "gpbench.core.kernels.Kernel"}, "must be a subclass of gpbench.core.kernels.Family"),
        (kernel_spec, {"_target_": "gpbench.core.kernels.Family"}, "lacks cross, diag, initial"),
        (kernel_spec, {"_target_": "gpbench.core.kernels.Matern52", "isotropic": 1}, "isotropic=1: must be true or"),
        (likelihood_spec, {"_target_": "gpbench.core.likelihoods.Probit", "node": 1}, "has no option 'node'"),
        (likelihood_spec, {"_target_": "math.pi"}, "math.pi may not be used: a target is of gpbench"),
        (likelihood_spec, {"_target_": "optax.adam"}, "must be a subclass of gpbench.core.likelihoods.Likelihood"),
    ],
)
def test_a_wrong_class_of_ones_own_is_one_line(parse, value, message):
    with pytest.raises(ConfigError, match=message):
        parse(value)
