"""Data: cards -> sources (store, mirror, official address) -> arrays -> splits -> scaling."""

from gpbench.data.dataset import Dataset
from gpbench.data.scaling import Prepared, prepare
from gpbench.data.sources import configured, load

__all__ = ["Dataset", "Prepared", "configured", "load", "prepare"]
