"""The JSON Schemas for editors take every file that ships, and refuse keys and values that gpbench refuses."""

import json
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = {"card": "dataset/*", "experiment": "experiment/*/*", "claims": "claims/*"}
WRONG = {
    "card": [{"target": 3, "tasks": "binary"}, {"task": "classes"}, {"rows": 0}, {"splits": {"sets": 3}}],
    "experiment": [{"run": []}, {"title": 3}],
    "claims": [{"c01": {"place": "page 1"}}, {"c01": {"text": "x", "clause": []}}],
}


@pytest.mark.parametrize("kind", FILES)
def test_files_that_ship_fit_their_schema_and_wrong_ones_do_not(kind):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: the extra `dev`")
    checker = jsonschema.Draft202012Validator(json.loads((ROOT / f"docs/reference/schemas/{kind}.json").read_text()))
    paths = [*(ROOT / "conf").glob(f"{FILES[kind]}.yaml")]
    assert paths and all(checker.is_valid(yaml.safe_load(path.read_text())) for path in paths)
    whole = yaml.safe_load(paths[0].read_text())
    assert not any(checker.is_valid({**whole, **wrong}) for wrong in WRONG[kind])
