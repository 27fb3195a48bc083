"""`gpbench cite`: the BibTeX entries of methods, data sets, protocols and runs."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path

from gpbench.cli.output import Answer
from gpbench.errors import ConfigError, nearest
from gpbench.papers import references
from gpbench.records.unions import Results, first_answer, open_stores, union


def cite(*names: str, config_dir: Sequence[Path] = (), results: Results = None) -> Answer:
    """Print the BibTeX entries that methods, data sets, protocols or recorded runs cite.

    Args:
        names (NAME...): a method, data set or protocol, or the id of a run for all three
        config_dir: a folder with your own files, and references.bib for what they cite

    examples:
      gpbench cite sep pima hl2016 > paper.bib
    """
    if results:
        open_stores(results)  # a folder that is absent is an error, whatever is cited
    known = references.names(config_dir).keys() | references.entries(config_dir).keys()
    keys = [key for name in names for key in ([name] if name in known else _parts(name, results, known, config_dir))]
    works = references.references(keys, config_dir)
    return Answer([asdict(work) for work in works], references.bibtex(works))


def _parts(id: str, results: Results, known: Collection[str], folders: Sequence[Path]) -> list[str]:
    """Method, data set and protocol of a run, and gpbench."""
    try:
        record = first_answer(results, lambda stores: union(stores).find(id))
    except ConfigError as error:
        if id and all(digit in "0123456789abcdef" for digit in id):
            raise  # it looks like the id of a run, and the message of the store is the better one
        raise ConfigError(f"no method, data set, protocol or run {id!r}; {nearest(id, known)}") from error
    files = references.names(folders)
    parts = [name for group in references.GROUPS if (name := getattr(record, group)) in files]
    return [*parts, "gpbench"]
