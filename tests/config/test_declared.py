"""What the classes of methods declare is known without JAX, and every other value is one line before a job starts."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from gpbench import cli
from gpbench.config import declared
from gpbench.config.compose import Composer
from gpbench.config.declared import check_task
from gpbench.core import optimisers
from gpbench.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]

WRONG = [
    # settings that another class has, or none
    "method=svi +method.features=rff",
    "method=svdgp method.natural_step=auto",
    "method=sep method.likelihood=softmax",
    # choices and numbers that this class does not take
    "method=sep method.update=both",
    "method=svi +method.conditional=scale",
    # kernels and likelihoods
    "method=svdgp method.kernel=matern32",
    "method=gam method.kernel=linear",
    "method=svi method.kernel={periodic: {period: -2}}",
    "method=svi method.kernel={sum: [linear, {matern12: {nu: 2}}]}",
    "method=svi dataset=boston method.likelihood={student_t: {df: -1}}",
    "method=svi dataset=boston method.likelihood=probit",
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
    "method.optimiser={rate: 1}",
    "+protocol.optimiser.rate=0.1",
    # protocols
    "protocol.lengthscale_prior={median: 0}",
    "protocol.networks.batch_size=0",
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
    for words in (["method=svi", "method.likelihood=logistic"], ["dataset=wine", "method=svi"]):
        cfg = Composer().compose(words)
        check_task(cfg["method"], cfg["dataset"])
    cfg = Composer().compose(["dataset=boston", "method=svi", "method.likelihood=probit"])
    with pytest.raises(ConfigError, match="boston is regression: choose auto, gaussian"):
        check_task(cfg["method"], cfg["dataset"])
    command = [sys.executable, ROOT / "scripts" / "settings.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
