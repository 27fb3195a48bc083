"""Configurations composed by a merge are those that Hydra composes, and mistakes in words are one line."""

import json
from pathlib import Path

import pytest

from gpbench.config import bridge, merge, words
from gpbench.config.compose import Composer
from gpbench.errors import ConfigError
from gpbench.experiments import definition
from gpbench.experiments.plan import plans

CONF = Path(__file__).resolve().parents[2] / "conf"


def members(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


DATASETS, PROTOCOLS = members("dataset"), members("protocol")
CHOICES = [
    [f"dataset={DATASETS[k]}", f"method={name}", f"protocol={PROTOCOLS[k % len(PROTOCOLS)]}"]
    for k, name in enumerate(members("method"))
]
"""Every method and protocol once at least."""

JOBS = [
    [],
    ["dataset=boston", "method=svi", "split=[0,3]", "method.inducing=20", "run.trace_every=5"],
    ["dataset=boston", "method=dgp", "method.hidden=[2,3]", "protocol.steps=7", "protocol.lbfgs.steps=3"],
    ["method=qsgp", "dataset=sinc", "method.optimiser=null", "++method.rate=0.5", "+run.new=null"],
    ["method=svi", "method.optimiser={_target_: optax.sgd, learning_rate: 0.1}", "protocol.optimiser={up: 1.1}"],
    ["method.inducing=${protocol.steps}", "data.store=a-${seed}", "method.kernel={matern32: {isotropic: true}}"],
    ["+method.rank=${method.inducing}", "method.inducing=9", "~method.start", "data.store='a b'"],
]


def jobs_of_experiments() -> list[list[str]]:
    experiments = map(definition.read, definition.names())
    jobs = [definition.overrides(job) for e in experiments for preset in definition.PRESETS for job in e.jobs(preset)]
    return [list(job) for job in dict.fromkeys(map(tuple, jobs))]


def composed(jobs) -> list[str]:
    """As text, which tells 1 from 1.0, and the order of keys; an error as its line."""
    composer = Composer()

    def text(job) -> str:
        try:
            return json.dumps(composer.compose(job))
        except ConfigError as error:
            return str(error)

    return [text(job) for job in jobs]


def composed_by_hydra(jobs, monkeypatch) -> list[str]:
    def unusual(*_):
        raise merge.Unusual

    with monkeypatch.context() as patch:
        for name in ("choose", "changed", "resolved"):
            patch.setattr(merge, name, unusual)
        return composed(jobs)


@pytest.mark.parametrize("jobs", [[*JOBS, *CHOICES[::6]], CHOICES], ids=["a few", "every method"])
def test_a_merge_gives_what_hydra_gives(monkeypatch, jobs):
    assert composed(jobs) == composed_by_hydra(jobs, monkeypatch)


def test_every_job_of_every_experiment_is_what_hydra_gives(monkeypatch):
    jobs = jobs_of_experiments()
    assert len(jobs) > 1500 and composed(jobs) == composed_by_hydra(jobs, monkeypatch)


def test_jobs_of_experiments_need_no_hydra(monkeypatch):
    monkeypatch.setattr(bridge, "hydra", None)
    monkeypatch.setattr(bridge, "change", None)
    monkeypatch.setattr(bridge, "resolve", None)
    assert len(composed(jobs_of_experiments()[::40])) > 40


FILES = {
    "method/below.yaml": "defaults: [svi]\nname: below\nsteps: 7\n",
    "method/above.yaml": "defaults: [_self_, svi]\nname: above\nsteps: 7\n",
    "method/absolute.yaml": "defaults: [/method/svi, _self_]\nname: absolute\n",
    "method/header.yaml": "# @package _global_\nmethod: {_target_: a.B, name: header}\nseed: 3\n",
    "method/resolver.yaml": "_target_: a.B\nname: ${oc.env:HOME}\nx: 1 of ${method.y}\ny: 1e-5\nz: [2016-01-01]\n",
    "method/circle.yaml": "_target_: a.B\nname: b\nx: ${method.y}\ny: ${method.x}\n",
    "method/missing.yaml": "_target_: a.B\nname: ???\n",
    "method/twice.yaml": "name: a\nname: b\n",
    "method/texts.yaml": "- a\n",
    "protocol/mine.yaml": "defaults: [clean, _self_]\nname: mine\nvariational: {natural_step: null}\n",
}


def test_files_of_a_user_are_merged_as_hydra_does(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    jobs = [[name.removesuffix(".yaml").replace("/", "=")] for name in FILES]
    monkeypatch.setattr("gpbench.config.compose.folders", lambda _: [tmp_path])
    assert composed(jobs) == composed_by_hydra(jobs, monkeypatch)


WORDS = (
    "a=1 a=-1 a=+1 a=0 a=01 a=1.5 a=1.50 a=-0.0 a=1. a=.5 a=1e3 a=1e-05 a=1E+5 a=1_0 a=true a=True a=FALSE a=null"
    " a=Null a=nan a=inf a=Inf a=nano a=infx a=true1 a=x a=_x a=x-y a=x.y a=x/y a=1x a=x1 a='x' a='x y' a='1' a=[]"
    " a=[1,x,'y'] a=[x] a=[1.0,null] a=[[1]] a= a.b=1 a.b_c.d-e=1 +a=1 ++a=1 ~a a.0=1 a='' a='a,b' a='true' a=[a,b]"
    " a=[1,] a=[,1] a=[[1,2],[3] a=] a=[[]] a=[[],[x,[y]]] a={} a={x:1} a={x:1,x:2} a={1:2} a={true:1} a={x:} a={x"
    " a=x.y.z-1 a=true.x a=x.1 a=${a.b} a=${a}${b} a=${a-b} a=[${a.b},{x:'y'}] a=x:1 a=: a={x:{y:[1,{}]}}"
)
SPACED = ["a='x y'", "a=[ 1 ]", "a={x: {y: 1}, z: [1, 'a b']}", "a={x : 1}", "a=[a b]", "a={x 1}"]


@pytest.mark.parametrize("text", [*WORDS.split(" "), *SPACED])
def test_a_plain_word_means_what_it_means_to_hydra(text):
    try:
        expected = bridge.parse(text)
    except ConfigError as error:
        with pytest.raises(ConfigError, match="cannot read"):
            words.read([text])
        assert "cannot read" in str(error)
    else:
        (word,) = words.read([text])
        value = list(word.value) if isinstance(word.value, tuple) else word.value
        assert repr((word.sign, word.key, value)) == repr(expected)


WRONG = ["method.indcing=3", "run.no=1", "protocol=none", "split=0,1", "method.inducing=${no}", "method.optimiser.no=1"]


@pytest.mark.parametrize("word", WRONG)
def test_mistakes_are_refused_beside_several_choices(word):
    with pytest.raises(ConfigError):
        Composer().compose(["dataset=pima", "method=svi", word])


def test_a_key_of_a_section_that_the_protocol_has_changes_the_method_alone():
    cfg = Composer().compose(
        ["method=svi", "method.optimiser.learning_rate=0.2", "+protocol.variational.optimiser.b1=0"]
    )
    assert cfg["method"]["optimiser"] == {"_target_": "optax.adam", "learning_rate": 0.2, "b1": 0}


def test_an_environment_variable_is_read_each_time(monkeypatch):
    for folder in ("first", "second"):
        monkeypatch.setenv("OUT", folder)
        (plan,) = plans([["run.results=${oc.env:OUT}"]])
        assert plan.results == folder


def test_a_results_folder_of_the_environment_is_read_each_time(monkeypatch):
    for folder in ("first", "second"):
        monkeypatch.setenv("GPBENCH_RESULTS", folder)
        (plan,) = plans([["method=logistic"]])
        assert plan.results == folder
