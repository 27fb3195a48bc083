"""Data sets from Python: the rows in original units, and each split as a method sees it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from gpbench.api.words import Folders, folders, with_cards, words
from gpbench.arguments import checked
from gpbench.config.compose import compose
from gpbench.data import checks, sources, splits
from gpbench.data.dataset import Dataset
from gpbench.data.scaled import ScaledSplit, prepare

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LoadedDataset:
    """A data set under a protocol: all rows in original units, and its splits.

    Attributes:
        rows: the rows and their names, a `gpbench.data.Dataset`.
        card: the data card: task, sources, licence, peculiarities, split sets.
        protocol: the protocol, which says how a split is scaled.
    """

    rows: Dataset
    card: Mapping[str, Any]
    protocol: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self.rows.name

    @property
    def task(self) -> str:
        """The task: "regression", "count", "binary" or "multiclass"."""
        return self.rows.task

    @property
    def X(self) -> Float[np.ndarray, "N D"]:
        """The inputs (N, D) in original units."""
        return self.rows.X

    @property
    def y(self) -> Float[np.ndarray, " N *O"]:
        """The targets (N,) in original units, (N, O) with several outputs; -1/+1 or 0 to C-1 for classes."""
        return self.rows.y

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the inputs; x1, x2, ... where the data set has none."""
        return self.rows.columns or tuple(f"x{i + 1}" for i in range(self.rows.X.shape[1]))

    @property
    def splits(self) -> int:
        """The number of splits."""
        return splits.count(self.card)

    @property
    def frame(self) -> "pd.DataFrame":
        """All rows in original units, the inputs by their names, then the target or the outputs; classes by name."""
        import pandas as pd

        frame = pd.DataFrame(self.rows.X, columns=[*self.columns])
        if self.rows.outputs:
            return frame.join(pd.DataFrame(self.rows.y, columns=[*self.rows.outputs]))
        if not self.rows.classes:
            return frame.assign(**{self.rows.target: self.rows.y})
        codes = (self.rows.y > 0 if self.task == "binary" else self.rows.y).astype(int)
        return frame.assign(**{self.rows.target: pd.Categorical.from_codes(codes, categories=[*self.rows.classes])})

    @checked
    def split(self, number: int = 0, *, output: int | None = None) -> ScaledSplit:
        """A split as a method sees it, scaled by the scalers of the protocol.

            split = gpbench.load("moons").split(0)
            split.X, split.y, split.X_test, split.y_test      # arrays (n, D), (n,), (t, D), (t,)
            split.original_inputs(split.X)                    # the rows in their own units again

        Args:
            number: the number of the split, from 0.
            output: the number of the output that is the target, for a data set with several outputs.
        """
        (k,) = splits.split_numbers(self.card, [number])
        train, test = splits.indices(self.card, self.rows, k, output=output)
        scalers = {key: self.protocol[key] for key in ("inputs", "targets")}
        return prepare(self.rows, train, test, output=output, **scalers)

    def check(self) -> checks.Report:
        """Describes the rows and names what is doubtful in them, as `gpbench data check` does.

            report = gpbench.load("heart").check()
            print(report)
            [finding.text for finding in report.findings]

        Returns:
            The report: rows, inputs with their kinds and ranges, classes, splits, and findings, each with its `mend`.
        """
        return checks.check(self.card, self.rows)

    def __repr__(self) -> str:
        rows, inputs = self.rows.X.shape
        outputs = f", {len(self.rows.outputs)} outputs" if self.rows.outputs else ""
        kind = f"{self.task}, {rows:,} rows, {inputs} inputs{outputs}, {self.splits} splits"
        return f"{self.name}: {kind}; protocol {self.protocol['name']}"


@checked
def load(
    dataset: str, *, protocol: str = "clean", overrides: Iterable[str] = (), config_dir: Folders = (), **keys: Any
) -> LoadedDataset:
    """Loads a data set from the local store, the mirror or its official address.

        data = gpbench.load("moons")
        data.X, data.y                     # all rows in original units
        data.split(0).X                    # the training rows of the first split, scaled

    Args:
        dataset: the name of a data card (`gpbench ls datasets`); or the path of a table, with `target="COLUMN"`, or
            "openml:NUMBER", for which a card is written.
        protocol: the protocol that says which splits there are and how they are scaled.
        overrides: words as on the command line.
        config_dir: folders with dataset/ and protocol/ files of yours.
        **keys: further keys of the command line, as for `gpbench.run`: `data__mirror`, `protocol__inputs`, ...

    Raises:
        ConfigError: an unknown name, or a key or value that is wrong.
        DataError: the data are missing or damaged.
    """
    choice = {} if protocol == "clean" else {"protocol": protocol}  # a word of `overrides` may choose it too
    texts = words({"dataset": dataset} | choice | keys, overrides)
    cfg = compose(*with_cards(texts, folders(config_dir)))
    return LoadedDataset(sources.configured(cfg), cfg["dataset"], cfg["protocol"])
