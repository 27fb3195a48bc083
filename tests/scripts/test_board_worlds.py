"""Simulated worlds of the leaderboard: probabilities as stated, a truth of its own, and the table."""

import math
import sys

import board_worlds as worlds
import numpy as np
import pytest


def test_wins_noise_lost_runs_and_the_truth_are_those_of_the_strengths():
    losses = worlds.World(2, 12, spread=1.0, shared=0.0).losses(np.random.default_rng(0), 20_000)
    chance = 1 / (1 + math.exp(-1.0))
    assert np.mean(losses[0] < losses[1]) == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / 60_000))
    losses = worlds.World(3, 12, shared=1.0, lost=0.5).losses(np.random.default_rng(0), 4_000)
    assert np.all(losses == losses[:, :, :1])
    lost = np.isinf(losses).mean(axis=(1, 2))
    assert lost == pytest.approx([0.0, 0.25, 0.5], abs=4 * math.sqrt(0.25 / 4_000))
    points, rates = worlds.World(2, 12, spread=1.0).truth(np.random.default_rng(0))
    assert points[0] - points[1] == pytest.approx(400 / math.log(10), abs=12)
    assert rates[0] == pytest.approx(1 / (1 + math.exp(-1.0)), abs=0.015)


def test_the_script_prints_a_line_for_each_world(monkeypatch, capsys):
    monkeypatch.setattr(worlds, "WORLDS", worlds.WORLDS[:2])
    monkeypatch.setattr(sys, "argv", ["board_worlds.py", "--worlds", "2", "--draws", "20"])
    worlds.main()
    head, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and head.count("|") == lines[0].count("|") == 2 and lines[0].count("%") == 5
