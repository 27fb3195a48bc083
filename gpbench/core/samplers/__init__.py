"""Samples of a run: the schedule that keeps states, the samplers of blackjax, and how far chains agree."""

from gpbench.core.samplers.chains import Adaptation, Chain, Microcanonical, NoUTurn, Scales, blackjax
from gpbench.core.samplers.samples import Samples, Schedule, agreement, followed, mixture, schedule

__all__ = [
    "Adaptation",
    "Chain",
    "Microcanonical",
    "NoUTurn",
    "Samples",
    "Scales",
    "Schedule",
    "agreement",
    "blackjax",
    "followed",
    "mixture",
    "schedule",
]
