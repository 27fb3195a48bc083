"""YAML of users: deep, large and odd documents are one line, whatever libyaml would do with them."""

import os
import re

import pytest

from gpbench import limits, yamls
from gpbench.errors import ConfigError

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(9 * [f'*{below}'])}]\n" for below, name in zip("abcdefg", "bcdefgh", strict=True)
)
REFUSED = {
    "[" * 100_000: "more than 100 levels",
    "- " * 100_000: "more than 100 levels",
    "a: &a [*a]": "a part of itself",
    LAUGHS: "more than 20,000 entries",
    "a: !!timestamp 99999-1-1": "could not determine a constructor",
    "a: !!set {x}": "could not determine a constructor",
    "a: !!python/object/apply:os.getcwd []": "could not determine a constructor",
    "a: [": "not YAML",
}


def test_a_document_that_is_too_much_a_pipe_and_a_file_of_four_megabytes_are_one_line(tmp_path):
    for text, reason in REFUSED.items():
        (tmp_path / "mine.yaml").write_text(text)
        with pytest.raises(ConfigError, match=reason) as caught:
            yamls.read(tmp_path / "mine.yaml")
        assert "mine.yaml" in str(caught.value) and "\n" not in str(caught.value)
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "large.yaml").write_bytes(b"a: 1\n" + b"#" * limits.YAML)
    for name, line in (("pipe", "it is no regular file"), ("large", "the file has 4,194,309 bytes, and 4,194,304 are")):
        with pytest.raises(ConfigError, match=f"{name}.yaml cannot be read as YAML in UTF-8: {line}"):
            yamls.read(tmp_path / f"{name}.yaml")


def test_anchors_merges_a_byte_order_mark_and_texts_that_look_like_numbers_are_read(tmp_path):
    (tmp_path / "mine.yaml").write_text("\ufeffa: &a {b: 1}\nc: {<<: *a, d: 1e-5}")
    assert yamls.read(tmp_path / "mine.yaml") == {"a": {"b": 1}, "c": {"b": 1, "d": 1e-5}}
    for text in ("1E2", "0e12", "+1e3", ".5e-3", "1e-5", "12:30", "007", "1_0", "yes", "~", "2024-01-31"):
        content = {text: [text, 1.5, 1e-7, 1e22, None, True], 100: "x"}
        assert yamls.load(yamls.dump(content)) == content
        assert [*map(type, yamls.load(yamls.dump(content)))] == [str, int]


def test_two_keys_that_are_one_number_are_refused_with_both_spellings(tmp_path):
    card = tmp_path / "card.yaml"
    for pair in ("1E2: 1, 100", "1.0: a, 1", "true: a, 1", "0e12: a, 0e73", "1: a, 1"):
        card.write_text(f"codes: {{{pair}: 2}}\n")
        first, last = pair.split(":")[0], pair.split(", ")[1]
        which = f", which is {first}: quote both to tell them apart" * (first != last)
        with pytest.raises(ConfigError, match=re.escape(f"found duplicate key {last}{which}")) as refused:
            yamls.read(card)
        assert "\n" not in str(refused.value)
    card.write_text("codes: {'1E2': 1, 100: 2}\n")
    assert yamls.read(card) == {"codes": {"1E2": 1, 100: 2}}
