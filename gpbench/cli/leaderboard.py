"""`gpbench leaderboard add`: trains a method, and shows how it stands; `verify`: makes random runs of a file again."""

import random
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from gpbench import paths
from gpbench.analysis.leaderboard import DIVISIONS, LIMIT, division_of, eligible, lost, name_of
from gpbench.analysis.leaderboard_sheet import place_sheet
from gpbench.api.comparisons import board_of
from gpbench.api.tables import Table
from gpbench.cli.output import Named, results_folder
from gpbench.config.compose import compose
from gpbench.config.words import require_once, word
from gpbench.data import cards
from gpbench.errors import AbsentError, ConfigError, DivergedError, SweepError, require
from gpbench.experiments.plan import plans, words_of
from gpbench.log import log
from gpbench.records.collection import SUFFIX, open_existing
from gpbench.records.plan import RunPlan
from gpbench.records.store import latest
from gpbench.records.unions import SHIPPED, open_stores

_LIMITS = (f"run.cpu_limit={LIMIT:g}", "run.device=cpu")  # words of every run of a board
_TEXTS = ("method=", "method.", "+method.", "run.again=")  # beginnings of the words that a command line may have


def add(
    *overrides: str,
    division: str = "regression",
    full: bool = False,
    jobs: int = 1,
    dry_run: bool = False,
    config_dir: Sequence[Path] = (),
    results: Named = None,
) -> Table | int:
    """Train a method on the small data sets of a division, and show how it stands there.

    Args:
        overrides (KEY=VALUE): method and settings
        division (NAME): regression (default) or classification
        full: all data sets of the division: hours
        jobs (K): processes at a time (default: 1)
        dry_run: list the jobs and what is recorded of them
        config_dir: a folder with your own method/ files, and the modules they name

    examples:
      gpbench leaderboard add method=mine --config-dir mine
      gpbench leaderboard add method=svi method.inducing=50         a setting of yours of a method of gpbench's
      gpbench leaderboard add method=mine run.again=true            make its runs again, after a change of its code

    the rules:
      docs/reference/leaderboard.md
    """
    from gpbench.sweep.jobs import Jobs

    folder = results_folder(results)
    fault = f"--results {folder}: runs are recorded in a folder: name one, and --with-shipped"
    require(folder.suffix != SUFFIX, fault, ConfigError)
    words = _jobs(division, full, overrides, folder)
    planned = [plan for plan in plans(words, config_dir) if isinstance(plan, RunPlan)]
    ids, shared = [run.id for plan in planned for run in plan.runs], planned[0].cfg["run"]
    sweep = Jobs(config_dir, {**shared, "jobs": jobs})
    stores = results or [folder, *([SHIPPED] if paths.shipped_files() else [])]
    _require_others(ids, division, full, [item for item in stores if item == SHIPPED or Path(item).exists()])
    if dry_run:
        from gpbench.sweep.display import preview

        return preview(words, config_dir)
    log.info(f"{len(ids)} runs, each of at most {LIMIT:g} CPU seconds")
    sweep.launch(words)
    failure: SweepError | None = None
    try:
        sweep.conclude()
    except DivergedError:  # lost runs count
        pass
    except SweepError as error:  # without some of its runs it has no place
        failure = error
    try:
        runs = board_of(division, not full, stores)
        if (name := name_of(runs, ids)) is None:
            raise AbsentError("it has no place without a run, or a recorded loss, on each data set of the others")
    except AbsentError as error:
        raise failure or error from None
    sheet, picture = place_sheet(runs, name), ("comparisons.draw_board", runs)
    table = Table(sheet, picture=picture, records=runs.runs.values(), results=stores)
    if folder == paths.results_dir():
        flags = " --quick" * (not full) + f" --division {division}" * (division != "regression")
        log.info(f"`gpbench leaderboard --with-shipped{flags}` shows it again")
    if failure:
        log.error(failure)
        table.exit_code = failure.exit_code
    return table


def verify(file: Path, *, runs: int = 3, config_dir: Sequence[Path] = ()) -> int:
    """Make random runs of a file of records again, and compare their numbers within the margins of ties.

    Args:
        file (FILE): records of runs of a division, as `gpbench collect --out FILE` writes them
        runs (N): how many; default: 3
        config_dir: a folder with the method/ files, and the modules they name, of a method that is not gpbench's

    examples:
      gpbench leaderboard verify mine.parquet --config-dir mine
    """
    from gpbench.sweep.jobs import Jobs

    require(runs > 0, f"--runs {runs}: must be above 0", ConfigError)
    store, count = open_existing(file), 0
    fits = lambda record: not (record.imported or lost(record))
    known = {r.id: (r, d) for d in DIVISIONS.values() for r in filter(fits, eligible(store.all(), d.datasets()))}
    require(known, f"{file}: no run of a division with predictions", AbsentError)
    drawn = [known[id] for id in random.SystemRandom().sample(sorted(known), min(runs, len(known)))]
    with tempfile.TemporaryDirectory() as folder:
        own = [f"run.results={word(folder)}", *_LIMITS]
        words = [words_of(record, store.config(record.id)) + own for record, _ in drawn]
        (sweep := Jobs(config_dir, {**compose(own, config_dir)["run"], "jobs": 1})).launch(words)
        sweep.conclude()
        again = {record.id: record for record in open_existing(folder).all()}
        for record, division in drawn:
            fault = f"{file}: run {record.id} is of other data, code or settings than its words have here"
            require(record.id in again, fault, ConfigError)
            for measure in division.measures:
                was, now = (float(r.metrics[measure.metric] or 0.0) for r in (record, again[record.id]))
                verdict = "as in the file" if measure.ties(was, now) else "differs by more than a tie"
                print(f"{record.label}  {measure.metric} {was:.6g}, now {now:.6g}: {verdict}")
                count += not measure.ties(was, now)
    print(f"made again: {len(drawn)} of {len(known)} runs; imported and lost ones are not ({len(store.all())} records)")
    return int(count > 0)


def _jobs(division: str, full: bool, words: Sequence[str], results: Path) -> list[list[str]]:
    """The jobs that place a method, which these words name with its settings; the largest first, not last and alone."""
    for text in words:
        hint = "" if "=" in text else f": write method={text}"
        fault = f"{text}: the leaderboard fixes all but the method and its settings{hint}"
        require(text.startswith(_TEXTS), fault, ConfigError)
    names = [text for text in words if text.startswith("method=")]
    several = f"{' and '.join(names)}: " if names else ""
    fault = f"{several}name the one method to place, as in `gpbench leaderboard add method=svi`"
    require(len(names) == 1 and "," not in names[0], fault, ConfigError)
    for text in words:
        is_list = "," in (value := text.partition("=")[2]) and value[0] not in "[{'\""
        fault = f"{text}: one method is placed with one value of each setting; add it once for each"
        require(not is_list, fault, ConfigError)
    require_once(words)
    shared = [*words, "protocol=clean", *_LIMITS, f"run.results={word(paths.expanded(results).resolve())}"]
    sets = sorted(division_of(division).datasets(not full).items(), key=lambda item: -cards.read(item[0])["rows"])
    return [[f"dataset={name}", f"split={split}", *shared] for name, split in sets]


def _require_others(ids: Collection[str], division: str, full: bool, stores: Sequence[str | Path]) -> None:
    """Raises AbsentError where the method with these runs, by id, would have no other to stand beside."""
    records = latest(record for store in (open_stores(stores) if stores else []) for record in store.all())
    runs = eligible(records, division_of(division).datasets(not full))
    if all(record.id in ids for record in runs):
        command = f"`gpbench reproduce gpbench/leaderboard_{division} --preset full` makes all"
        mend = f"--with-shipped reads those that ship; {command}"
        raise AbsentError(f"no run of another method is recorded on the {division} board: {mend}")
