"""Checks of the properties that the training loop relies on in a method, a user's own too: `gpbench check`."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "families": ("examine_kernel", "examine_likelihood"),
        "findings": ("Finding", "examine"),
        "lowering": ("examine_platform",),
    },
)
