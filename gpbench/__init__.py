"""gpbench: scalable Gaussian-process methods of five papers beside the numbers those papers published."""

__version__ = "0.1.0"
