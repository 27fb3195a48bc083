"""Samples of a run: the schedule that keeps states, the samplers of blackjax, and how far chains agree."""

from gpbench.core.samplers.convergence import agreement, followed
from gpbench.core.samplers.library import blackjax
from gpbench.core.samplers.microcanonical import Chain, Microcanonical, Scales
from gpbench.core.samplers.nuts import Adaptation, NoUTurn
from gpbench.core.samplers.samples import Samples, Schedule, mixture, schedule

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
