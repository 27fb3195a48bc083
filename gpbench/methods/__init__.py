"""The methods: `base` is their interface, `parts` what several share, and each other file a method."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {"base": ("Batch", "Info", "Method"), "parts.gradient": ("FullBatchMethod", "GradientMethod", "SampledMethod")},
)
