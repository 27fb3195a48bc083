"""Data: cards -> sources (store, mirror, official address) -> arrays -> splits -> scaling."""

from gpbench.data.dataset import Dataset
from gpbench.data.prepare import ScaledSplit, prepare
from gpbench.data.scaling import SCALERS, Scaler, fit_scalers
from gpbench.data.sources import configured, load

__all__ = ["SCALERS", "Dataset", "ScaledSplit", "Scaler", "configured", "fit_scalers", "load", "prepare"]
