"""`gpbench rm`: deletes recorded runs."""

from pathlib import Path

from gpbench import paths
from gpbench.records import open_existing, open_store


def rm(*runs: str, dry_run: bool = False, results: Path | None = None) -> None:
    """Delete the folders of recorded runs from the results folder, damaged ones too.

    Args:
        runs (RUN...): ids of runs, or their first digits (`gpbench ls runs`)
        dry_run: name what would be deleted, and delete nothing

    examples:
      gpbench rm 3f2a 81c0
      gpbench rm 3f2a --dry-run
    """
    store = open_existing(results) if results else open_store(paths.results_dir())
    for id in dict.fromkeys(store.id_of(word) for word in runs):
        record = store.get(id)
        about = record.label if record else "a damaged record"
        if not dry_run:
            store.delete(id)
        print(f"{'would delete' if dry_run else 'deleted'} {id}  {about}")
