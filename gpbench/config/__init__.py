"""From the words of a command line to a plain, resolved configuration, and to the method that it describes."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__, {"build": ("build_method",), "compose": ("Composer",), "values": ("check_values",)}
)
