"""Configurations are those that Hydra composes, and every value that a class does not take is one line."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from gpbench import cli
from gpbench.config import declared, merge, words
from gpbench.config.compose import Composer
from gpbench.config.declared import check_task
from gpbench.core import optimisers
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


def merged(job: list[str], folders=()) -> str:
    """As text, which tells 1 from 1.0, and the order of keys; an error as "wrong"."""
    try:
        parsed = words.read(job)
        choices = [word for word in parsed if word.key in words.GROUPS and not isinstance(word.value, dict)]
        cfg = merge.choose({word.key: word.value for word in choices}, folders)
        for word in parsed:
            cfg = cfg if word in choices else merge.changed(cfg, word)
        return json.dumps(merge.resolved(cfg))
    except ConfigError:
        return "wrong"


def merged_by_hydra(job: list[str], folders=()) -> str:
    path = [f"hydra.searchpath=[file://{folder}]" for folder in folders]
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose("config", [*path, *job])
            return json.dumps(OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True))
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError):
        return "wrong"


def test_a_merge_gives_what_hydra_gives_and_a_short_word_means_what_it_means_to_hydra():
    for job in [*JOBS, *CHOICES]:
        assert merged(job) == merged_by_hydra(job) != "wrong", job
    parser = OverridesParser.create()
    for text in WORDS.split(" "):
        try:
            parsed = parser.parse_override(text)
        except HydraException:
            with pytest.raises(ConfigError, match="cannot read"):
                words.read([text])
            continue
        (word,) = words.read([text])
        value = list(word.value) if isinstance(word.value, tuple) else word.value
        assert repr((word.sign + word.key, value)) == repr((parsed.get_key_element(), parsed.value())), text


def test_jobs_of_experiments_are_what_hydra_gives_and_are_read_without_it(monkeypatch):
    jobs = jobs_of_experiments()
    assert len(jobs) > 1500 and all(merged(job) == merged_by_hydra(job) for job in jobs[::100])
    short = [job for job in jobs if not any("${" in word or "{" in word for word in job)]
    words._read.cache_clear()
    monkeypatch.setattr(words, "parse", None)
    monkeypatch.setattr(merge, "_by_omegaconf", None)
    assert len(short) > 0.8 * len(jobs) and all(merged(job) != "wrong" for job in short[::40])


FILES = {
    "method/below.yaml": "defaults: [svi]\nname: below\nsteps: 7\n",
    "method/above.yaml": "defaults: [_self_, svi]\nname: above\nsteps: 7\n",
    "method/resolver.yaml": "_target_: a.B\nname: ${oc.env:HOME}\nx: 1 of ${method.y}\ny: 1e-5\nz: [2016-01-01]\n",
    "method/circle.yaml": "_target_: a.B\nname: b\nx: ${method.y}\ny: ${method.x}\n",
    "method/missing.yaml": "_target_: a.B\nname: ???\n",
    "method/twice.yaml": "name: a\nname: b\n",
    "protocol/mine.yaml": "defaults: [clean, _self_]\nname: mine\nvariational: {natural_step: null}\n",
}


def test_files_of_a_user_are_merged_as_hydra_does(tmp_path, new_file):
    for name, content in FILES.items():
        new_file(tmp_path / name, content)
        job = [name.removesuffix(".yaml").replace("/", "=")]
        assert merged(job, [tmp_path]) == merged_by_hydra(job, [tmp_path]), name


def test_a_file_changes_the_section_of_its_folder_alone(tmp_path, new_file):
    for text, line in {
        "# @package _global_\nmethod: {name: mine}\n": "leave out the line `# @package`",
        "defaults: [{/protocol: clean}]\nname: mine\n": "defaults: {/protocol: clean}: write the name of another",
        "defaults: [/method/svi, _self_]\nname: mine\n": "defaults: /method/svi: write the name of another method",
        "- a\n": "mine.yaml: must be a mapping, with lines of KEY: VALUE",
        "defaults: [mine, _self_]\nname: mine\n": "defaults: mine: write the name of another method",
    }.items():
        new_file(tmp_path / "method" / "mine.yaml", text)
        with pytest.raises(ConfigError, match=line):
            Composer([tmp_path]).compose(["method=mine"])


WORDS = (
    "a=1 a=-1 a=0 a=01 a=1.5 a=1.50 a=-0.0 a=1. a=1e3 a=1_0 a=true a=True a=FALSE a=null a=Null a=nan a=inf a=Inf"
    " a=nano a=infx a=true1 a=x a=_x a=x-y a=x.y a=x/y a=1x a=x1 a='1' a=[] a=[1,x,'y'] a=[1,-2.50] a=[[1],[2,[]]]"
    " a=[1,] a= a.b=1 a.b_c.d-e=1 +a=1 ++a=1 ~a a.0=1 a='' a='true' a={x:1} a=${a.b} a={x:{y:[1,{}]}} a=[1,x"
)


@pytest.mark.parametrize("method", ["svi", "svi_natural", "ivsgpr", "svgp", "svdgp", "odsvgp"])
def test_an_optimiser_or_a_kernel_takes_the_place_of_that_of_the_file(method):
    chosen = {"_target_": "optax.sgd", "learning_rate": 0.02}
    cfg = Composer().compose([f"method={method}", "method.optimiser={_target_: optax.sgd, learning_rate: 0.02}"])
    assert cfg["method"]["optimiser"] == chosen
    kernels = {"{matern32: {isotropic: true}}": {"matern32": {"isotropic": True}}, "linear": "linear"}
    for word, kernel in kernels.items():
        assert Composer().compose(["method=dkl", f"method.kernel={word}"])["method"]["kernel"] == kernel
    deep = Composer().compose(["method=dkl", "method.kernel.deep.hidden=[5]"])["method"]["kernel"]["deep"]
    assert deep == {"hidden": [5], "outputs": 10}


def test_the_environment_is_read_each_time_and_a_section_of_the_protocol_changes_the_method_alone(monkeypatch):
    for name, job in (("OUT", ["run.results=${oc.env:OUT}"]), ("GPBENCH_RESULTS", ["method=logistic"])):
        for folder in ("first", "second"):
            monkeypatch.setenv(name, folder)
            (plan,) = plans([job])
            assert plan.results == folder
    words = ["method=svi", "method.optimiser.learning_rate=0.2", "+protocol.variational.optimiser.b1=0"]
    cfg = Composer().compose(words)
    assert cfg["method"]["optimiser"] == {"_target_": "optax.adam", "learning_rate": 0.2, "b1": 0}


@pytest.mark.parametrize("value", ["[" * 3000 + "]" * 3000, "9" * 6000])
def test_what_is_too_deep_or_too_long_is_one_line(value):
    with pytest.raises(ConfigError, match="cannot read 'a="):
        words.read([f"a={value}"])


ROOT = Path(__file__).resolve().parents[2]

WRONG = [
    # settings that another class has, or none
    "method=svi +method.features=rff",
    "method=sep method.likelihood=softmax",
    # kernels and likelihoods
    "method=svdgp method.kernel=matern32",
    "method=gam method.kernel=linear",
    "method=svi method.kernel={sum: [linear, {matern12: {nu: 2}}]}",
    "method=svi dataset=boston method.likelihood={student_t: {df: -1}}",
    # methods of other tasks
    "method=gpr",
    # trials
    "method=sep +method.rates=[0.1]",
    "method=sep +method.search={damping: [0.1]}",
    "method=dropout dataset=boston +method.search={dropout: [1.5]}",
    # optimisers
    "method.optimiser={_target_: gpbench.core.optimisers.adaptive_rate}",
    "method.optimiser={_target_: gpbench.core.optimisers.adadelta, rate: 0.1}",
    "method.optimiser={_target_: optax.adam, learning_rate: 0}",
    "+protocol.optimiser.rate=0.1",
    # protocols
    "protocol.lengthscale_prior={median: 0}",
    # runs
    "run.preset=slow",
]


def words_of(text: str) -> list[str]:
    """The words of a line; a value in braces has spaces of its own."""
    words: list[str] = []
    for piece in text.split(" "):
        if words and words[-1].count("{") > words[-1].count("}"):
            words[-1] += f" {piece}"
        else:
            words.append(piece)
    return words


def test_wrong_values_are_refused_by_a_dry_run_in_one_line(capsys):
    for text in WRONG:
        words = words_of(text)
        words = words if any(word.startswith("dataset=") for word in words) else ["dataset=wdbc", *words]
        assert cli.main(["run", "--dry-run", *words]) == 2, text
        out, err = capsys.readouterr()
        assert (out, err[:9], err.count("\n")) == ("", "gpbench: ", 1), text


def test_every_file_of_a_method_fits_its_class_whose_settings_have_meanings():
    composer = Composer()
    for path in (ROOT / "conf" / "method").glob("*.yaml"):
        assert composer.compose([f"method={path.stem}"])["method"]["_target_"] in declared.classes()
    for path, entry in declared.classes().items():
        assert all(setting["meaning"].endswith((".", ")")) for setting in entry["settings"].values()), path
    for path, arguments in declared.optimisers().items():
        assert arguments.keys() == inspect.signature(getattr(optimisers, path.rpartition(".")[2])).parameters.keys()


def test_a_likelihood_that_fits_passes_and_the_page_of_settings_is_that_of_the_classes():
    for job in (["method=svi", "method.likelihood=logistic"], ["dataset=wine", "method=svi"]):
        cfg = Composer().compose(job)
        check_task(cfg["method"], cfg["dataset"])
    cfg = Composer().compose(["dataset=boston", "method=svi", "method.likelihood=probit"])
    with pytest.raises(ConfigError, match="boston is regression: choose auto, gaussian"):
        check_task(cfg["method"], cfg["dataset"])
    command = [sys.executable, ROOT / "scripts" / "settings.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_method_has_settings_of_its_own_in_regression_and_under_the_protocols_of_papers(tmp_path, new_file):
    steps = lambda *words, folders=(): Composer(folders).compose(["dataset=sinc", *words])["method"]["steps"]
    assert (steps("method=pbp"), steps("method=pbp", "protocol=bui2016")) == (400, 40)
    assert steps("method=pbp", "protocol=bui2016", "method.steps=7") == 7
    jobs = (["dataset=sinc", "method=qsrvm", *words] for words in ([], ["dataset=moons"], ["protocol=evans2020"]))
    assert [Composer().compose(job)["method"]["rate"] for job in jobs] == [0.01, 0.1, 0.1]
    files = {"protocol": "defaults: [bui2016]\nname: mine\n", "method": "defaults: [pbp]\npapers: {stps: 1}\n"}
    for group, text in files.items():
        new_file(tmp_path / group / "mine.yaml", text)
    assert steps("method=pbp", "protocol=mine", folders=[tmp_path]) == 40
    wrong = {"papers: {stps: 1}": "papers: 'stps' is not a key", "papers: {1: 1, steps: 3}": "papers: '1' is not a key"}
    wrong |= {"regression: {name: a}": "regression: 'name' is not a key", "regression: []": "regression: must be a map"}
    for line, message in wrong.items():
        (tmp_path / "method" / "mine.yaml").write_text(f"defaults: [pbp]\n{line}\n")
        with pytest.raises(ConfigError, match=rf"^method\.{message}"):
            steps("method=mine", folders=[tmp_path])
