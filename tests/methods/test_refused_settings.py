"""Settings and data that do not fit: each is one line that says how to mend it, when the method is made or starts."""

import pytest
from problems import FROZEN, KEY, binary, regression

from gpbench.core.optimisers import decaying_adam
from gpbench.errors import ConfigError
from gpbench.methods.bnn.dropout import Dropout
from gpbench.methods.bnn.ensemble import Ensemble
from gpbench.methods.bnn.hmc import HMC
from gpbench.methods.bnn.laplace import LinearisedLaplace
from gpbench.methods.bnn.mile import MILE
from gpbench.methods.bnn.pbp import PBP
from gpbench.methods.bnn.sgld import SGLD
from gpbench.methods.deep.dgp import DGP
from gpbench.methods.ep.gfitc import GFITC
from gpbench.methods.ep.sep import SEP
from gpbench.methods.exact.alacarte import AlaCarte
from gpbench.methods.exact.sdd import SDD
from gpbench.methods.vi.cagp import CAGP
from gpbench.methods.vi.sgpr_greedy import GreedySGPR
from gpbench.methods.vi.svdgp import SVDGP
from gpbench.methods.vi.svi import SVI
from gpbench.methods.vi.vif import VIF
from gpbench.methods.vi.vsgpr import VSGPR

ROWS, CLASSES = regression(25), binary(20)
GROWING = {"optimiser": decaying_adam(), "mean_basis": 5, "covariance_basis": 5, "growth": 5}
PATHS, STEPPING = {"predictive": "sample", "optimiser": FROZEN}, {"optimiser": FROZEN, "inducing": 5}
SQUARED = r"needs a squared exponential kernel, not matern52: choose .*$"

MISTAKES = [
    (AlaCarte, ROWS, {"kernel": "matern52"}, rf"^own {SQUARED}"),
    (AlaCarte, ROWS, {"frequencies": 10**7}, r"^20,000,000 features need .* TB, and .* GB of memory are free: .*$"),
    (AlaCarte, ROWS, {"batch_size": 5}, r"^method\.batch_size=5: must be null$"),
    (AlaCarte, ROWS, {"optimiser": FROZEN}, r"^method\.optimiser=.*: must be null$"),
    (AlaCarte, ROWS, {"frequencies": 0}, r"^method\.frequencies=0: must be a whole number from 1$"),
    (CAGP, ROWS, {"actions": 26}, r"^method\.actions=26 asks for 26 actions, but there are 25 training rows: choose a"),
    (DGP, ROWS, {"energy": "sep"}, r"^method\.energy=sep needs a method\.optimiser"),
    (DGP, ROWS, {"inducing": 50, **PATHS}, "asks for 50 inducing points, but there are 25 training rows"),
    (DGP, ROWS, {"hidden": (2,), "samples": 3, **PATHS}, "samples=3 must be a power of two of at least 8"),
    (DGP, ROWS, {"hidden": (2,), "samples": 48, **PATHS}, "samples=48 must be a power of two of at least 8"),
    (DGP, ROWS, {"hidden": (3, 3), "samples": 16, **PATHS}, "samples=16 must be a power of two of at least 32"),
    (Dropout, ROWS, {"dropout": -0.1}, "method.dropout=-0.1: must be a number from 0 and below 1"),
    (Dropout, ROWS, {"dropout": 1.0}, "method.dropout=1.0: must be a number from 0 and below 1"),
    (Dropout, ROWS, {"dropout": 1.5}, "method.dropout=1.5: must be a number from 0 and below 1"),
    (Ensemble, ROWS, {"likelihood": "laplace"}, r"^own needs a gaussian, .* likelihood, not "),
    (GFITC, CLASSES, {"batch_size": 10}, r"^method\.batch_size=10: must be null$"),
    (GFITC, CLASSES, {"likelihood": "gaussian"}, "needs a probit or logistic likelihood, not gaussian"),
    (GreedySGPR, ROWS, {"inducing": 26}, r"^method\.inducing=26 asks for 26 inducing points, but there are 25"),
    (HMC, ROWS, {"steps": 0}, r"method.steps=0: must be a whole number from 1"),
    (LinearisedLaplace, ROWS, {"likelihood": "student_t"}, r"needs a gaussian, .* likelihood, not "),
    (MILE, ROWS, {"batch_size": 10}, r"^method.batch_size=10: must be null$"),
    (MILE, ROWS, {"likelihood": "laplace"}, r"^own needs a gaussian, .* likelihood, not "),
    (PBP, ROWS, {"likelihood": "laplace"}, r"^own needs a gaussian likelihood, not "),
    (PBP, ROWS, {"gamma_shape": 1.0}, r"^method\.gamma_shape=1\.0: must be a number above 1$"),
    (SDD, CLASSES, {}, r"^own is for regression, and these are 2 classes: try svi$"),
    (SEP, CLASSES, {"likelihood": "softmax", **STEPPING}, "needs a probit or logistic likelihood, not softmax"),
    (SEP, CLASSES, {"gradient": "scalars", "batch_size": 5, **STEPPING}, r"^method\.gradient=scalars needs all rows"),
    (SEP, CLASSES, {"update": "outer", "batch_size": 5, **STEPPING}, r"^method\.update=outer needs all rows"),
    (SGLD, ROWS, {"steps": 6, "burn_in": 1.0}, r"no samples: of method.steps=6 the first 6 are burn-in"),
    (SGLD, ROWS, {"samples": 0}, r"method.samples=0: must be a whole number from 1"),
    (SVDGP, ROWS, {**GROWING, "batch_size": 10, "growth": 11}, "method.growth=11"),
    (SVDGP, ROWS, {**GROWING, "covariance_basis": 26}, "method.covariance_basis=26 is more than the 25 training rows"),
    (SVDGP, ROWS, {**GROWING, "mean_basis": 26}, "method.mean_basis=26 is more than the 25 training rows"),
    (SVDGP, ROWS, {**GROWING, "natural_step": 0.1}, "method.natural_step is for method.parametrisation=orthogonal"),
    (SVDGP, ROWS, {**GROWING, "likelihood": "heteroscedastic"}, "likelihood, not heteroscedastic"),
    (SVDGP, ROWS, {**GROWING, "kernel": "matern52"}, SQUARED),
    (SVI, CLASSES, {"batch_size": 10}, "L-BFGS needs all rows"),
    (SVI, CLASSES, {"natural_step": 0.1}, "natural_step needs"),
    (SVI, ROWS, {"likelihood": "probit"}, "likelihood probit does not fit regression data"),
    (SVI, ROWS, {"features": "generalised", "kernel": "matern52"}, SQUARED),
    (SVI, ROWS, {"conditional": "scaled", "likelihood": "student_t"}, "needs Gaussian noise, and the likelihood is"),
    (SVI, CLASSES, {"subset_rows": 10}, r"^method\.subset_rows=10 .* set method.subset_rows=null for classes .*$"),
    (
        SVI,
        ROWS,
        {"subset_rows": 10, "likelihood": "student_t"},
        r"^method\.subset_rows=10 .* set method.subset_rows=nu",
    ),
    (VIF, ROWS, {"neighbours": 25}, r"^method\.neighbours=25: there are 25 training rows: choose a number below$"),
    (VSGPR, ROWS, {"optimiser": FROZEN}, r"^method\.optimiser=.*: must be null$"),
    (VSGPR, ROWS, {"features": "generalised", "kernel": "matern52"}, SQUARED),
]
NEEDED = {cls: {"optimiser": FROZEN} for cls in (Dropout, Ensemble, LinearisedLaplace, MILE)}


@pytest.mark.parametrize(("cls", "data", "fields", "line"), MISTAKES, ids=[f"{m[0].__name__} {m[2]}" for m in MISTAKES])
def test_a_mistake_is_one_line(cls, data, fields, line):
    with pytest.raises(ConfigError, match=line) as error:
        cls(**{"name": "own", **NEEDED.get(cls, {}), **fields}).init(data, key=KEY)
    assert "\n" not in str(error.value)
