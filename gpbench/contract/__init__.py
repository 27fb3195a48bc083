"""Checks of the training loop's assumptions about a method, kernel or likelihood of one's own: `gpbench check`."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__, {"families": ("examine_kernel", "examine_likelihood"), "findings": ("Finding", "examine")}
)
