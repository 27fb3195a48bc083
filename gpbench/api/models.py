"""Recorded runs from Python: the record, the arrays kept beside it, and predictions of new rows."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gpbench import runtime
from gpbench.api.words import Folders, folders
from gpbench.arguments import checked
from gpbench.errors import AbsentError, ConfigError, DataError, require
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.records.unions import Results, first_answer, union

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    from gpbench.train.predictor import Predictor

Rows: TypeAlias = Any
"""Rows to predict: an array (T, D), a table of pandas, polars, pyarrow or the like, or the path of one."""


class RecordedRun:
    """A recorded run: record, configuration, trace, and the model if the trained state was saved (`run.save=true`).

    Attributes:
        record: the record of the run.
        config: the resolved configuration of the run.
    """

    def __init__(self, store: Store, record: Record, config_dirs: Sequence[Path] = ()):
        self.record, self.config = record, store.config(record.id)
        self._store, self._config_dirs = store, config_dirs

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self._store.folder_of(self.record.id)

    @property
    def trace(self) -> "dict[str, np.ndarray]":
        """Step, seconds, objective and metrics along the training, (points,) each; empty without a trace.

        Seconds are those of all runs that were trained together (`record.group`)."""
        return self._store.trace(self.record.id)

    @property
    def test_predictions(self) -> "dict[str, np.ndarray]":
        """The predictions of the test rows by column, (t,) each: `row`, `target`, `log_prob`, ...; {} if not kept."""
        return self._store.predictions(self.record.id)

    @property
    @checked
    def packages(self) -> dict[str, str]:
        """The versions of all packages that were installed where the run was made, by name."""
        from gpbench.records import packages

        if not self.record.packages:
            raise AbsentError(f"run {self.record.id} is from before records named all installed packages, or imported")
        return packages.parse(self._store.packages(self.record.packages))

    @property
    @checked
    def labels(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the columns of `predict_proba`; () for regression."""
        return self._model.dataset.classes

    @property
    @checked
    def pictures(self) -> dict[str, str]:
        """The kinds of pictures of `plot`: "" for those that suit the run, of the others what the run lacks."""
        from gpbench.report.figures import offers

        return offers.kinds(offers.RunContent.read(self._store, self.record))

    @checked
    def plot(self, kind: str | None = None) -> "Figure":
        """Draws a picture of a kind in `pictures`, as "calibration"; by default of what it kept, or else its trace."""
        from gpbench.report.figures import offers

        content = offers.RunContent.read(self._store, self.record)
        return offers.draw_kind(content, offers.default(content) if kind is None else kind)

    @checked
    def predict(
        self, X: Rows, *, return_std: bool = False, header: bool = True
    ) -> "np.ndarray | tuple[np.ndarray, np.ndarray]":
        """Predicts new rows.

        Args:
            X: inputs in original units: an array (T, D); a table of pandas, polars, pyarrow or another library with
                `__arrow_c_stream__`, with columns of the data set's names, in any order; or the path of a csv, Parquet
                or Excel file with such columns.
            return_std: also return the standard deviations of the target, noise included; for regression.
            header: False for a file without a header, which has exactly the inputs, in their order.

        Returns:
            For regression the predictive means (T,) in original units; for classification the names of the most
            probable classes (T,).

        Raises:
            ConfigError: the state of the run was not saved, or was saved by another version of its method;
                `return_std` for classes; or JAX was imported without 64-bit types.
            DataError: the rows cannot be read.
        """
        import numpy as np

        columns = self._columns(X, header)
        if "mean" in columns:
            return (columns["mean"], np.sqrt(columns["variance"])) if return_std else columns["mean"]
        require(not return_std, "return_std: classes have no standard deviation; use predict_proba", ConfigError)
        return np.array(self.labels)[np.argmax([*columns.values()], axis=0)]

    @checked
    def predict_proba(self, X: Rows, *, header: bool = True) -> "np.ndarray":
        """The probabilities (T, C) of the classes `labels` for new rows; `X`, `header` and errors as for `predict`."""
        import numpy as np

        columns = self._columns(X, header)
        fault = "predict_proba is for classes, and this run is one of regression; use predict"
        require("mean" not in columns, fault, ConfigError)
        return np.stack([*columns.values()], axis=1)

    @checked
    def predict_frame(self, X: Rows, *, header: bool = True) -> "pd.DataFrame":
        """The predictions as `gpbench predict` writes them, a row for each row of X, which is as for `predict`.

        The columns are `mean`, `variance`, `low95` and `high95` in original units, or `probability of LABEL` for each
        class."""
        import pandas as pd

        return pd.DataFrame(self._columns(X, header))

    def _columns(self, X: Rows, header: bool) -> "dict[str, np.ndarray]":
        from gpbench.data.new_rows import new_inputs

        model = self._model
        return model.predict(new_inputs(X, model.card, model.dataset, header=header))

    @functools.cached_property
    def _model(self) -> "Predictor":
        from gpbench.config.compose import Composer

        try:
            fault = "it has no saved state: train it again with run.save=true run.again=true"
            require(self.record.saved, fault, ConfigError)
            try:
                cfg = Composer(self._config_dirs).restore(self.config)
            except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
                raise ConfigError(f"its configuration cannot be used ({type(error).__name__}: {error})") from error
            runtime.require_float64(device=cfg["run"]["device"])
            from gpbench.train.predictor import Predictor

            return Predictor(self._store, self.record, cfg)
        except (ConfigError, DataError) as error:
            hint = ""
            if self.config.get("config_dirs") and not self._config_dirs:
                hint = "; it was trained with a --config-dir, which a record cannot bring: name the folder again"
            raise type(error)(f"run {self.record.id}: {error}{hint}") from error

    def __repr__(self) -> str:
        fields = ("id", "dataset", "method", "setting", "protocol")
        names = "  ".join(str(value) for field in fields if (value := getattr(self.record, field)))
        return f"{names}  split {self.record.split}  {self.record.status}"


@checked
def load_run(run: str | Record | None = None, *, results: Results = None, config_dir: Folders = ()) -> RecordedRun:
    """Opens a recorded run; one that was saved (`run__save=True`) predicts new rows.

        model = gpbench.load_run()  # the latest; or one by its id or its record
        model.predict_proba([[0.0, 1.0]])

    Args:
        run: the id of the run, or its first digits (`gpbench ls runs`), or its record; None is the latest.
        results: the results folder, a file that `gpbench collect` made, "shipped", or several; by default
            `GPBENCH_RESULTS`, or results/ here, or the runs that ship with gpbench where that has no such run.
        config_dir: folders with the data sets and methods of your own that the run was trained with.  The folders that
            a record names are not used, because a record may come from somebody else.
    """

    def find(stores: list[Store]) -> tuple[Store, Record]:
        store = union(stores)
        if not isinstance(run, Record):
            return store, store.last() if run is None else store.find(run)
        fault = f"run {run.id} is not in {store.runs}: name its folder, as in results=runs.results"
        require(store.contains(run.id), fault, AbsentError)
        return store, store.find(run.id)

    return RecordedRun(*first_answer(results, find), folders(config_dir))
