"""Sweeps of many runs: their jobs, the processes or cluster that runs these, and their outcome."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {"jobs": ("Jobs",), "launcher": ("chosen_launcher", "sweep"), "local": ("Child",), "processes": ("needed", "run")},
)
