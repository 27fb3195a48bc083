"""A run's identity is what determines its numbers."""

import subprocess
import sys

import pytest

from gpbench.config.compose import compose
from gpbench.errors import ConfigError
from gpbench.records.identity import SCHEMA, cell_id, identify, run_id

BASE = {"method": {"name": "sep", "m": "15%", "rate": 1.0, "hidden": [3, 2]}}
BASE |= {"protocol": {"name": "clean", "jitter": 1e-6}, "data": {"name": "wdbc"}, "data_checksum": "ab12", "split": 0}
BASE |= {"seed": 0}


def without(*keys):
    return {key: value for key, value in BASE.items() if key not in keys}


def test_an_id_is_16_hex_digits_that_depend_on_values_alone_and_a_cell_leaves_out_split_and_seed():
    of_method = lambda method: run_id(**{**BASE, "method": method})
    assert len(run_id(**BASE)) == 16 and int(run_id(**BASE), 16)
    assert of_method(dict(reversed(BASE["method"].items()))) == run_id(**BASE)
    assert of_method({**BASE["method"], "hidden": (3, 2)}) == run_id(**BASE)
    assert of_method({**BASE["method"], "rate": 1}) != run_id(**BASE)  # a whole number is no float
    assert cell_id(**without("split", "seed")) == cell_id(**without("split", "seed"))
    assert cell_id(**without("split", "seed", "data"), data={"name": "pima"}) != cell_id(**without("split", "seed"))


def test_every_part_of_the_identity_changes_the_id():
    method, protocol = BASE["method"], BASE["protocol"]
    changes = [{"split": 1}, {"seed": 1}, {"data_checksum": "ab13"}, {"data": {"name": "pima"}}]
    changes += [{"method": method | {"rate": 1.5}}, {"method": method | {"rate": True, "m": None}}]
    for change in [*changes, {"protocol": protocol | {"jitter": 1e-5}}]:
        assert run_id(**BASE | change) != run_id(**BASE), change


CARD = {"name": "wdbc", "task": "binary", "splits": {"set": "random90", "sets": {"random90": 5}}}
PROTOCOL = {"name": "clean", "inputs": "standardise", "targets": "standardise", "precision": "float64", "steps": 250}
CONFIG = {"method": {"name": "svi", "inducing": 20}, "protocol": PROTOCOL, "dataset": CARD, "run": {"timing": False}}


def identity(**sections):
    return identify({**CONFIG, **sections}, "ab12")


@pytest.mark.parametrize(
    ("section", "change", "is_same"),
    [
        *(("protocol", PROTOCOL | change, True) for change in ({"steps": 300}, {"new": [1, 2]}, {"start": "rows"})),
        ("protocol", {"name": "clean"}, True),  # a neutral value is as one that is absent
        *(("protocol", PROTOCOL | change, False) for change in ({"inputs": "unit"}, {"targets": "none"})),
        *(("protocol", PROTOCOL | change, False) for change in ({"precision": "float32"}, {"name": "my"})),
        *(("dataset", CARD | change, True) for change in ({"title": "Breasts"}, {"oddities": ["none"]})),
        *(("dataset", CARD | change, True) for change in ({"sources": []}, {"cite": "them"})),
        ("dataset", CARD | {"task": "regression"}, False),
        ("dataset", CARD | {"splits": {"set": "official", "sets": {"official": 1}}}, False),
    ],
)
def test_what_reaches_arrays_metrics_or_the_record_changes_the_id_and_nothing_else_does(section, change, is_same):
    assert (identity(**{section: change}) == identity()) == is_same


def test_the_identity_has_a_schema_number_and_a_key_added_later_with_its_implied_value_changes_nothing():
    def later(value, implied="gaussian"):
        return identity(method=CONFIG["method"] | {"likelihood": value}, implied={"likelihood": implied})

    assert later("gaussian") == identity() != later("laplace")
    assert later(1.0, implied=1.0) == identity() != later(1, implied=1.0)
    assert identity()["schema"] == SCHEMA


def test_the_section_implied_is_not_part_of_the_method(tmp_path):
    (tmp_path / "method").mkdir()
    file = tmp_path / "method" / "own.yaml"
    words = ["dataset=moons", "method=own", "method.depth=2"]
    file.write_text("{_target_: own.Own, depth: 1, width: 3, implied: {width: '${protocol.steps}'}}")
    cfg = compose(words, [tmp_path])
    assert cfg["method"] == {"_target_": "own.Own", "depth": 2, "width": 3} and cfg["implied"] == {"width": 250}
    assert cfg["changes"] == {"method.depth": 2}
    file.write_text("{_target_: own.Own, depth: 1, implied: {widht: 3}}")
    with pytest.raises(ConfigError, match=r"method\.implied: 'widht' is not a key of the method"):
        compose(words, [tmp_path])


def test_nan_in_a_configuration_is_refused():
    with pytest.raises(ValueError):
        run_id(**{**BASE, "protocol": {"jitter": float("nan")}})


def test_id_is_the_same_in_another_process_and_records_import_neither_jax_nor_numpy():
    code = f"from gpbench.records.identity import run_id; print(run_id(**{BASE!r}))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == run_id(**BASE)
    code = (
        "import sys; from gpbench.records import collection, environment as e, identity, plan, store; "
        "e.facts(); assert not {'jax', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("method=vsgpr method.target_noise={}", 1),
        ("method=svi protocol.lengthscale_prior={{median:{},spread:1}}", 1),
        ("method=svi method.natural_step={}", 1),
        ("method=svi method.inducing={}", 2),  # one inducing point is not all rows
    ],
)
def test_a_whole_number_in_a_field_of_real_numbers_is_that_real_number(words, count):
    configurations = [compose([*words.format(one).split(), "dataset=sinc"]) for one in ("1", "1.0")]
    assert len({cell_id(**identify(cfg, "x")) for cfg in configurations}) == count
