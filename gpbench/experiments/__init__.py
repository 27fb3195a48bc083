"""The papers' tables and figures: the definition of each, its runs, and which of them are recorded."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "definition": ("Experiment", "PRESETS", "overrides", "read"),
        "kinds": ("FIGURES", "TABLES"),
        "plan": ("load", "plans"),
        "status": ("Cell", "absent", "require_recorded"),
    },
)
