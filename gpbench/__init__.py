"""gpbench: scalable Gaussian-process methods of five papers beside the numbers those papers published."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpbench.records.frame import frame

__all__ = ["__version__", "frame"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`gpbench.frame`, imported at its first use: the command line must start without it."""
    if name == "frame":
        from gpbench.records.frame import frame

        return frame
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
