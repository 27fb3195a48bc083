"""Every field of our methods and protocols has a range, which is what its class accepts; YAML of users is one line."""

import dataclasses
import importlib
import os
import pkgutil
import re

import pytest
import yaml

import gpbench.methods
from gpbench import limits, schema, yamls
from gpbench.config import declared
from gpbench.config.values import PROTOCOL as KEYS
from gpbench.config.values import TRANSFORMS
from gpbench.data import SCALERS
from gpbench.errors import ConfigError
from gpbench.methods.base import Method
from gpbench.paths import conf_dir
from gpbench.schema import settings

NAN, INF = float("nan"), float("inf")
NO_SIZES = ["101%, at least 9", "9%, at least 0"]

for module in pkgutil.walk_packages(gpbench.methods.__path__, "gpbench.methods."):
    importlib.import_module(module.name)


def subclasses(cls: type) -> list[type]:
    return [cls, *(below for child in cls.__subclasses__() for below in subclasses(child))]


CLASSES = sorted({cls for cls in subclasses(Method) if cls.__module__.startswith("gpbench.")}, key=repr)


def test_every_key_of_a_protocol_has_a_range_and_what_is_none_is_one_line():
    for path in conf_dir().glob("protocol/*.yaml"):
        assert not yaml.safe_load(path.read_text()).keys() - declared.ranges().keys() - KEYS.keys(), path
    assert KEYS["inputs"][0] == KEYS["targets"][0][: -len(TRANSFORMS)] == list(SCALERS)
    for words in ("positve", "count or nul", "list of positve"):
        with pytest.raises(ConfigError, match=r"no range '(positve|nul)'; did you mean"):
            schema.parse(words)
    for words in (3, None, [], {"least": 1}):
        with pytest.raises(ConfigError, match="a range is a name such as positive, or a list of choices, not"):
            schema.parse(words)


def test_every_field_of_a_class_is_declared_and_the_range_of_a_name_is_the_union_of_the_classes():
    for cls in CLASSES:
        assert settings(cls).keys() == {field.name for field in dataclasses.fields(cls)}
        for name, field in settings(cls).items():
            words, meaning = field.metadata["range"], field.metadata["meaning"]
            assert meaning[0].isupper() and meaning.endswith("."), (cls, name)
            if field.default is not dataclasses.MISSING:
                schema.parse(words).check(name, field.default)
    for cls in CLASSES:
        for name, field in settings(cls).items():
            if name in declared.ranges() and isinstance(field.metadata["range"], list | tuple):
                assert {*field.metadata["range"]} <= {*declared.ranges()[name]}, name
    assert declared.ranges()["natural_step"] == "fraction or auto or null" and declared.ranges()["alpha"] == "share"


@pytest.mark.parametrize(
    "words, inside, outside",
    [
        ("count", [1, 7], [0, -1, 1.0, True, "1", None, NAN]),
        ("whole", [0, 7], [-1, 0.0, False]),
        ("integer", [-7, 0], [0.5, 1.0, True]),
        ("number", [-1, 0.5], [NAN, INF, True, "1"]),
        ("positive", [1, 1e-9], [0, -1, NAN, INF, True]),
        ("above_one", [1.001, 6], [1, 1.0, 0.5, NAN, INF]),
        ("nonnegative", [0, 0.5], [-1e-9, NAN, INF]),
        ("fraction", [1, 1.0, 0.2], [0, 0.0, 1.1, NAN]),
        ("flag", [True, False], [0, 1, "true"]),
        ("text", ["", "a"], [None, 1]),
        ("any", [None, "a", NAN], []),
        (schema.SIZE, [1, 7, 1.0, 0.2, "12.5%, at least 9"], [0, 1.5, 7.0, True, "15%", *NO_SIZES]),
        ("count or null", [1, None], [0, "null"]),
        ("list of positive", [[], [0.1, 1], (0.1,)], [0.1, [0], ["0.1"], [NAN]]),
        (["rows", 1], ["rows", 1], ["row", 1.0, True, None, ["rows"]]),
    ],
    ids=str,
)
def test_a_range_has_the_values_that_its_words_say(words, inside, outside):
    contains = schema.parse(words).contains
    assert all(map(contains, inside)) and not any(map(contains, outside))


def test_messages_name_the_key_the_value_the_range_and_the_whole_number_that_a_float_stands_for():
    for words, text in (("count or null", "a whole number from 1, or null"), (["a", "b", None], "a, b or null")):
        with pytest.raises(ConfigError, match=f"^method.size=nan: must be {text}$"):
            schema.parse(words).check("method.size", NAN)
    for words, value, hint in (
        ("count", 1e3, "write 1000"),
        ("list of whole", [0, 1e1], r"write \[0, 10\]"),
        ("whole or null", 1e18, "write 10+"),
    ):
        with pytest.raises(ConfigError, match=f"^method.size=.*: must be .*; {hint}$"):
            schema.parse(words).check("method.size", value)


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(9 * [f'*{below}'])}]\n" for below, name in zip("abcdefg", "bcdefgh", strict=True)
)
REFUSED = {
    "[" * 100_000: "more than 100 levels",
    "- " * 100_000: "more than 100 levels",
    "a: &a [*a]": "a part of itself",
    LAUGHS: "more than 20,000 entries",
    "a: !!timestamp 99999-1-1": "could not determine a constructor",
    "a: !!python/object/apply:os.getcwd []": "could not determine a constructor",
    "a: [": "not YAML",
}


def test_a_document_that_is_too_much_a_pipe_and_a_file_of_four_megabytes_are_one_line(tmp_path, one_line):
    for text, reason in REFUSED.items():
        (tmp_path / "mine.yaml").write_text(text)
        with one_line(ConfigError, match=reason, says="mine.yaml"):
            yamls.read(tmp_path / "mine.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "large.yaml").write_bytes(b"a: 1\n" + b"#" * limits.YAML)
    for name, line in (("pipe", "it is no regular file"), ("large", "the file has 4,194,309 bytes, and 4,194,304 are")):
        with pytest.raises(ConfigError, match=f"{name}.yaml cannot be read as YAML in UTF-8: {line}"):
            yamls.read(tmp_path / f"{name}.yaml")


def test_anchors_merges_and_texts_like_numbers_are_read_and_two_keys_of_one_number_are_refused(tmp_path, one_line):
    (tmp_path / "mine.yaml").write_text("\ufeffa: &a {b: 1}\nc: {<<: *a, d: 1e-5}")
    assert yamls.read(tmp_path / "mine.yaml") == {"a": {"b": 1}, "c": {"b": 1, "d": 1e-5}}
    for text in ("1E2", "0e12", "+1e3", ".5e-3", "1e-5", "12:30", "007", "1_0", "yes", "~", "2024-01-31"):
        content = {text: [text, 1.5, 1e-7, 1e22, None, True], 100: "x"}
        assert yamls.load(yamls.dump(content)) == content
        assert [*map(type, yamls.load(yamls.dump(content)))] == [str, int]
    card = tmp_path / "card.yaml"
    for pair in ("1E2: 1, 100", "1.0: a, 1", "true: a, 1", "0e12: a, 0e73", "1: a, 1"):
        card.write_text(f"codes: {{{pair}: 2}}\n")
        first, last = pair.split(":")[0], pair.split(", ")[1]
        which = f", which is {first}: quote both to tell them apart" * (first != last)
        with one_line(ConfigError, match=re.escape(f"found duplicate key {last}{which}")):
            yamls.read(card)
    card.write_text("codes: {'1E2': 1, 100: 2}\n")
    assert yamls.read(card) == {"codes": {"1E2": 1, 100: 2}}
