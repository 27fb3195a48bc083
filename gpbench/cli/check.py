"""`gpbench check`: tests what the training loop requires of a method, a kernel, a likelihood or a metric."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import targets
from gpbench.cli import options
from gpbench.cli.formatting import HelpFormatter
from gpbench.config.words import require_once
from gpbench.errors import ConfigError, ContractError

if TYPE_CHECKING:
    from gpbench.contract.findings import Finding

_EPILOG = """\
examples:
  gpbench check sep
  gpbench check robust_gp --config-dir docs/examples
  gpbench check kernel:cosine --config-dir docs/examples
  gpbench check likelihood:student_t df=3
  gpbench check metric:pinball --config-dir docs/examples
  gpbench check sep_minibatch method.inducing=10 method.batch_size=16
  gpbench check robust_gp --config-dir docs/examples --platform cuda
"""


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "check",
        description="Check a method on small data sets of each of its tasks, or a kernel, a likelihood or a metric."
        " One line for each requirement.",
        formatter_class=HelpFormatter,
        epilog=_EPILOG,
    )
    parser.add_argument(
        "method",
        metavar="METHOD",
        help="the name of a method (`gpbench ls methods`), kernel:NAME, likelihood:NAME or metric:NAME",
    )
    parser.add_argument("overrides", nargs="*", default=[], metavar="KEY=VALUE", help="settings, as for gpbench run")
    options.add_config_dir(parser, "method/ files and modules")
    parser.add_argument(
        "--rows",
        type=int,
        default=None,
        metavar="N",
        help="number of training rows; default: 60, or more where the settings need them",
    )
    parser.add_argument(
        "--platform",
        choices=("cuda", "tpu"),
        help="whether the programs of a method compile for this platform, instead: each must lower, without waiting for"
        " the host and, in float32, without float64",
    )
    options.add_json(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError, and ContractError where a claim is broken."""
    if args.rows is not None and args.rows < 10:
        raise ConfigError(f"--rows {args.rows}: give at least 10")
    args.method = args.method.removeprefix("method=")
    require_once([f"method={args.method}", *args.overrides])
    folders = targets.add_folders(args.config_dir)
    kind, colon, name = args.method.rpartition(":")
    if colon and (unread := [option for option in ("rows", "platform") if getattr(args, option) is not None]):
        raise ConfigError(f"--{unread[0]}: {args.method} is no method; leave the option out")
    findings, page = [], f"own_{kind or 'method'}.md"
    for finding in _of_family(kind, name, args.overrides, folders) if colon else _of_method(args, folders):
        findings.append(finding)
        if not args.json:
            reason = f": {finding.reason}" if finding.reason else ""
            print(f"{finding.verdict:<9} {finding.task:<11} {finding.claim}{reason}", flush=True)
    if args.json:
        from gpbench.analysis import printing

        printing.print_json([_fields(finding) for finding in findings])
    if broken := sum(finding.verdict == "broken" for finding in findings):
        raise ContractError(f"{args.method} breaks {broken} of {len(findings)} claims; see docs/how-to/{page}")
    return 0


def _of_method(args: argparse.Namespace, folders: Sequence[Path]) -> "Iterator[Finding]":
    from gpbench import runtime
    from gpbench.config.compose import compose

    cfg = compose([f"method={args.method}", *args.overrides], folders)
    device = "cpu" if args.platform else cfg["run"]["device"]  # a program is lowered for others on any machine
    runtime.configure(device=device)
    runtime.start(device)

    if args.platform:
        from gpbench.contract.lowering import examine_platform

        return examine_platform(cfg["method"], args.platform, args.rows)

    from gpbench.contract.findings import examine

    return examine(cfg["method"], args.rows)


def _of_family(kind: str, name: str, words: Sequence[str], folders: Sequence[Path]) -> "Iterator[Finding]":
    """The findings for a kernel, a likelihood or a metric with the options KEY=VALUE."""
    from gpbench import custom, own_metrics, plugins, registry, runtime, yamls

    if kind not in (*registry.KINDS, "metric"):
        raise ConfigError(f"{kind}:{name}: check a METHOD, kernel:NAME, likelihood:NAME or metric:NAME")
    if malformed := [word for word in words if "=" not in word]:
        raise ConfigError(f"cannot read {malformed[0]!r}; write KEY=VALUE")
    options = {key: yamls.load(value) for key, _, value in (word.partition("=") for word in words)}
    if kind == "metric":
        runtime.configure(device="cpu")
        runtime.start()

        from gpbench.contract.families import examine_metric

        return examine_metric(own_metrics.get(name, [*folders, *plugins.folders()], options))
    value = custom.expand(kind, {name: options}, [*folders, *plugins.folders()])
    registry.read(kind, value)
    runtime.configure(device="cpu")
    runtime.start()

    from gpbench.contract import families

    return families.examine_kernel(value) if kind == "kernel" else families.examine_likelihood(value)


def _fields(finding: Any) -> dict[str, str]:
    """The finding as JSON has it, with its reason as `why`."""
    return {"task": finding.task, "claim": finding.claim, "verdict": finding.verdict, "why": finding.reason}
