"""`gpbench predict`: predictions of new rows by a recorded run."""

import sys
from collections.abc import Sequence
from pathlib import Path

from gpbench.api.models import load_run
from gpbench.cli.output import require_run, write_text
from gpbench.errors import ConfigError
from gpbench.records.unions import Results


def predict(
    run: str | None = None,
    *,
    last: bool = False,
    data: Path,
    no_header: bool = False,
    out: Path | None = None,
    config_dir: Sequence[Path] = (),
    results: Results = None,
) -> None:
    """Predict the rows of a table with a run that was trained with run.save=true: mean and variance in original units,
    or the probability of each class, as csv.

    Args:
        data (FILE): csv, Parquet or Excel: columns with the names of the data set's inputs, in any order
        no_header: FILE has no header, and the inputs in their order
        out (FILE): default: standard output
        config_dir: a folder with your own data sets and methods, where the run has some

    examples:
      gpbench run dataset=heart run.save=true
      gpbench predict --last --data patients.csv
    """
    require_run(run, last)
    if out and out.suffix.lower() not in ("", ".csv", ".txt"):
        raise ConfigError(f"--out {out}: predictions are csv: choose a file that ends in .csv")
    frame = load_run(run, results=results, config_dir=config_dir).predict_frame(data, header=not no_header)
    text = frame.to_csv(index=False, lineterminator="\n")
    if out:
        write_text(out, text)
    else:
        sys.stdout.write(text)
