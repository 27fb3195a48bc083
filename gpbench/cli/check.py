"""`gpbench check`: tests what the training loop requires of a method, a kernel, a likelihood or a metric."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpbench import own_metrics, plugins, registry, runtime, yamls
from gpbench.analysis import printing
from gpbench.config.compose import compose
from gpbench.config.words import require_once
from gpbench.errors import ConfigError, ContractError, require

if TYPE_CHECKING:
    from gpbench.contract.findings import Finding


def check(
    method: str,
    *overrides: str,
    config_dir: Sequence[Path] = (),
    rows: int | None = None,
    platform: Literal["cuda", "tpu"] | None = None,
    json: bool = False,
) -> None:
    """Check a method on small data sets of each of its tasks, or a kernel, a likelihood or a metric.  One line for each
    requirement.

    Args:
        method (METHOD): the name of a method (`gpbench ls methods`), kernel:NAME, likelihood:NAME or metric:NAME
        overrides (KEY=VALUE): settings, as for gpbench run
        config_dir: a folder with your own method/ files and modules
        rows (N): number of training rows; default: 60, or more where the settings need them
        platform: whether the programs of a method compile for this platform, instead: each must lower, without waiting
            for the host and, in float32, without float64

    examples:
      gpbench check sep
      gpbench check robust_gp --config-dir docs/examples
      gpbench check kernel:cosine --config-dir docs/examples
      gpbench check likelihood:student_t df=3
      gpbench check metric:pinball --config-dir docs/examples
      gpbench check sep_minibatch method.inducing=10 method.batch_size=16
      gpbench check robust_gp --config-dir docs/examples --platform cuda
    """
    require(rows is None or rows >= 10, f"--rows {rows}: give at least 10", ConfigError)
    method = method.removeprefix("method=")
    require_once([f"method={method}", *overrides])
    kind, colon, name = method.rpartition(":")
    if colon:
        for option, value in {"rows": rows, "platform": platform}.items():
            require(value is None, f"--{option}: {method} is no method; leave the option out", ConfigError)
        examined = _of_family(kind, name, overrides, config_dir)
    else:
        examined = _of_method(method, overrides, config_dir, rows, platform)
    findings = []
    for f in examined:
        findings.append({"task": f.task, "claim": f.claim, "verdict": f.verdict, "why": f.reason})
        if not json:
            print(f"{f.verdict:<9} {f.task:<11} {f.claim}{f.reason and ': '}{f.reason}", flush=True)
    if json:
        printing.print_json(findings)
    broken = sum(finding["verdict"] == "broken" for finding in findings)
    fault = f"{method} breaks {broken} of {len(findings)} claims; see docs/how-to/own_{kind or 'method'}.md"
    require(not broken, fault, ContractError)


def _of_method(
    method: str, words: Sequence[str], folders: Sequence[Path], rows: int | None, platform: str | None
) -> "Iterator[Finding]":
    cfg = compose([f"method={method}", *words], folders)
    device = "cpu" if platform else cfg["run"]["device"]  # a program is lowered for others on any machine
    runtime.configure(device=device)
    runtime.start(device)
    from gpbench.config.build import check_class
    from gpbench.contract import findings, lowering

    check_class(cfg["method"])
    if platform:
        return lowering.examine_platform(cfg["method"], platform, rows)
    return findings.examine(cfg["method"], rows)


def _of_family(kind: str, name: str, words: Sequence[str], folders: Sequence[Path]) -> "Iterator[Finding]":
    """The findings for a kernel, a likelihood or a metric with the options KEY=VALUE."""
    is_known = kind in (*registry.KINDS, "metric")
    require(is_known, f"{kind}:{name}: check a METHOD, kernel:NAME, likelihood:NAME or metric:NAME", ConfigError)
    for word in words:
        require("=" in word, f"cannot read {word!r}; write KEY=VALUE", ConfigError)
    options = {key: yamls.load(value) for key, _, value in (word.partition("=") for word in words)}
    folders = plugins.folders(folders)
    runtime.configure(device="cpu")
    if kind == "metric":
        value: Any = own_metrics.get(name, folders, options)
    else:
        value = registry.expand(kind, {name: options}, folders)
        registry.read(kind, value)
    runtime.start()
    from gpbench.contract import families

    return getattr(families, f"examine_{kind}")(value)
