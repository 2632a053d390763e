"""JSON of any shape, under the keys that each source knows, is a schema or one line."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.sources import read

WORDS = [
    *("name", "columns", "data_type", "description", "config", "depends_on", "nodes"),
    *("test_metadata", "kwargs", "resource_type", "constraints", "type", "materialized"),
    *("column_name", "attached_node", "database"),
]
TEXTS = st.sampled_from(["model", "test", "relationships", "unique", "[{1}]", "[({},)]", "x", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner),
    max_leaves=12,
)
TABLE = ["column_names", "column_types", "description", "sample_rows", "nested_column_names"]
TABLES = [
    *("table_names_original", "table_names", "column_names_original", "column_names"),
    *("column_types", "primary_keys", "foreign_keys"),
]


def content(kind: str, data: st.DataObject) -> Any:
    if kind == "manifest":
        node = st.fixed_dictionaries(
            {"resource_type": TEXTS, "columns": VALUES},
            optional={word: VALUES for word in WORDS if word not in ("resource_type", "columns")},
        )
        return {"metadata": {}, "nodes": {"a": data.draw(node), "b": data.draw(node)}}
    if kind == "table":
        good = {"column_names": ["a", "b.key"], "nested_column_names": ["a", "b", "b.key"]}
        return good | data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(TABLE, VALUES)))
    good = {
        "db_id": "x",
        "table_names_original": ["t"],
        "column_names_original": [[0, "a"]],
        "column_types": ["text"],
    }
    return [good | data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(TABLES, VALUES)))]


@pytest.mark.parametrize("kind", ["manifest", "table", "tables"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_json_is_a_schema_or_one_line(kind: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_text(json.dumps(content(kind, data)))
        try:
            assert read(path).schema.tables
        except BadInput as error:
            assert "\n" not in str(error)
