"""The class that conf/method/fake.yaml names; only its fields matter."""

from dataclasses import dataclass
from typing import Literal


@dataclass
class Fake:
    fate: Literal["done", "diverged", "error", "bug", "killed", "full", "deaf", "vanishes"] = "done"
    seconds: float = 0.0
    points: int | None = None
