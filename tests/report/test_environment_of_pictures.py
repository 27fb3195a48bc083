"""Pictures depend neither on the backend of a notebook nor on the user's matplotlibrc."""

import os
import subprocess
import sys

DRAW = """
import hashlib, io
from gpbench.report import figures
from gpbench.report.figures import style
with style.context():
    figure = style.figure(3, 2)
    axis = figure.subplots()
    axis.plot([1, 2], [3, 5], label="a_b")
    axis.legend()
file = io.BytesIO()
figures.write(figure, file, "png")
import matplotlib, os
print(hashlib.sha256(file.getvalue()).hexdigest(), os.environ.get("MPLBACKEND"), matplotlib.rcParams["text.usetex"])
"""


def drawn(**environment) -> list[str]:
    own = {name: value for name, value in os.environ.items() if name not in ("MPLBACKEND", "MATPLOTLIBRC")}
    done = subprocess.run([sys.executable, "-c", DRAW], env=own | environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_a_picture_is_the_same_whatever_the_notebook_and_the_user_have_set(tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nfigure.facecolor: red\nlines.linestyle: :\n")
    plain, backend, _ = drawn()
    assert backend == "None"
    for name in ("module://matplotlib_inline.backend_inline", "nonsense"):
        digest, backend, usetex = drawn(MPLBACKEND=name, MATPLOTLIBRC=str(tmp_path / "matplotlibrc"))
        assert digest == plain and usetex == "True" and backend == name  # the user's settings stay the user's
