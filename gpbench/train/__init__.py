"""Training: the loop over steps, checkpoints, groups of members, predictions and scores of finished fits."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "batches": ("prediction_key", "take_step", "whole"),
        "checkpoint": ("Checkpoint",),
        "group": ("Fit", "Group", "initial"),
        "loop": ("Cadence", "fit"),
        "predictor": ("Predictor",),
        "programs": ("Programs",),
        "result": ("predictions_by_row", "scores"),
        "session": ("configure", "train"),
        "stop": ("StopRequest",),
    },
)
