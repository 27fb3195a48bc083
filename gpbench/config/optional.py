"""Words that set a key only where it exists: `optional.method.inducing=0.1`."""

from collections.abc import Sequence

from gpbench.config.compose import Composer, require_known
from gpbench.config.words import OPTIONAL


def applicable(jobs: Sequence[Sequence[str]], composer: Composer) -> tuple[list[list[str]], list[str]]:
    """Decides for each job which of its optional words count.  Returns the jobs, without the prefix and without words
    that have no key to set; jobs that become equal by this are one. And a line for each key that some jobs do not have.
    Raises ConfigError: no job has such a key, and no method of gpbench either.
    """
    if not any(word.startswith(OPTIONAL) for words in jobs for word in words):
        return [list(words) for words in jobs], []
    unique = dict.fromkeys(tuple(composer.applicable(words)) for words in jobs)
    lines = []
    for key in dict.fromkeys(_key(word) for words in jobs for word in words if word.startswith(OPTIONAL)):
        having, lacking = _methods(key, jobs, composer)
        if not having:
            require_known(key)
        if lacking:
            lines.append(f"{key} is not set for {_listed(lacking)}: no such key")
    return [list(words) for words in unique], lines


def advice(jobs: Sequence[Sequence[str]], composer: Composer) -> str | None:
    """The line about a key that some methods of a sweep lack; None where there is none."""
    keys = dict.fromkeys(_key(word) for words in jobs for word in words if word.startswith("method."))
    for key in keys:
        having, lacking = _methods(key, jobs, composer)
        if having and lacking:
            return (
                f"{key}: {_listed(having)} {'have' if len(having) > 1 else 'has'} it, {_listed(lacking)}"
                f" {'do' if len(lacking) > 1 else 'does'} not; {OPTIONAL}{key}=VALUE sets it only where it exists"
            )
    return None


def _key(word: str) -> str:
    return word.partition("=")[0].removeprefix(OPTIONAL)


def _methods(key: str, jobs: Sequence[Sequence[str]], composer: Composer) -> tuple[list[str], list[str]]:
    """The methods of those jobs with a word for the key which have it, and of those which lack it."""
    methods: dict[bool, dict[str, None]] = {True: {}, False: {}}
    for words in jobs:
        if key in map(_key, words):
            name, exists = composer.lookup(words, key)
            methods[exists][name] = None
    return list(methods[True]), list(methods[False])


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
