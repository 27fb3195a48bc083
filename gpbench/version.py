"""The version of gpbench."""

__version__ = "0.1.0"
