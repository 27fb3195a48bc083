"""`gpbench check`: does a method keep what the training loop counts on?"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpbench.errors import ConfigError, ContractError

_EPILOG = """\
examples:
  gpbench check sep
  gpbench check exact_gp --config-dir docs/examples
  gpbench check sep_minibatch method.inducing=10 method.batch_size=16
"""


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "check",
        help="whether a method keeps what training counts on",
        description="Check a method on small data of each task it is for: one line for each claim, kept or broken.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    parser.add_argument("method", metavar="METHOD", help="its name (`gpbench ls methods`)")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings, as for gpbench run")
    parser.add_argument("--config-dir", action="append", default=[], type=Path, metavar="DIR",
                        help="your own method/ files, and the modules they name")  # fmt: skip
    parser.add_argument("--rows", type=int, default=None, metavar="N", help="training rows; by default 60, or more"
                        " where the settings ask for them")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the verb; the exit code.  Raises ConfigError, and ContractError where a claim is broken."""
    if args.rows is not None and args.rows < 10:
        raise ConfigError(f"--rows {args.rows}: give at least 10")
    folders = [folder.expanduser().resolve() for folder in args.config_dir]
    sys.path[:0] = map(str, folders)

    from gpbench import runtime
    from gpbench.config.compose import compose
    from gpbench.config.fields import check_fields

    cfg = compose([f"method={args.method}", *args.overrides], folders)
    runtime.configure(device=cfg["run"]["device"])
    check_fields(cfg["method"])

    from gpbench.contract.examine import examine
    from gpbench.report import text

    found = []
    for finding in examine(cfg["method"], args.rows):
        found.append(finding)
        if not args.json:
            why = f": {finding.why}" if finding.why else ""
            print(f"{finding.verdict:<9} {finding.task:<11} {finding.claim}{why}", flush=True)
    if args.json:
        text.as_json([asdict(finding) for finding in found])
    if broken := sum(finding.verdict == "broken" for finding in found):
        raise ContractError(f"{args.method} breaks {broken} of {len(found)} claims; docs/add_a_method.md has the rules")
    return 0
