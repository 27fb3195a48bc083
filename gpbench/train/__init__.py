"""Training: the loop over steps, checkpoints, groups of members, predictions and scores of finished fits."""

__all__ = ()
