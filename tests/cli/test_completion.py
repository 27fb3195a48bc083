"""Completion of command lines, as bash asks for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ASK = """eval "$(register-python-argcomplete gpbench)"; COMP_LINE="$1" COMP_POINT=${#1} COMP_TYPE=9
_python_argcomplete gpbench; printf '%s\\n' "${COMPREPLY[@]}" """
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
ANSWERS = {
    "gpbench le": {"leaderboard"},
    "gpbench leaderboard v": {"verify"},
    "gpbench nonsense x": {""},
    "gpbench table --forma": {"--format"},
    "gpbench table --format t": {"terminal"},
    "gpbench data info kin": {"kin40k", "kin8nm"},
    "gpbench rank --method sep,gp": {"sep,gpr"},
    "gpbench run dataset=pim": {"pima"},
    "gpbench run -m method=sep,lo": {"sep,logistic"},
    "gpbench run method=igp method.ra": {"method.rank="},
    "gpbench run method=gpr method.ra": {""},
    "gpbench run protocol.targets=l": {"log", "log1p"},
    "gpbench run method.likelihood=pro": {"probit"},
    "gpbench run method.energy=": {"aep", "sep"},
    f"gpbench run --config-dir {EXAMPLES} method=rob": {"robust_gp"},
    f"gpbench check --config-dir {EXAMPLES} quad": {"quadratic"},
}


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
@pytest.mark.parametrize("line", ANSWERS)
def test_bash_completes_verbs_options_names_and_settings(line):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", ASK, "", line], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert {word.strip() for word in done.stdout.splitlines()} == ANSWERS[line] and done.stderr == ""
