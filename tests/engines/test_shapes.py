"""Nested fields have one shape, whether a schema writes them as dotted names or inside a type."""

from __future__ import annotations

import pytest

from lynx_dspy.engines.shapes import Shape, shapes
from lynx_dspy.values import Column, Table

_DOTTED = (
    Column("geo", "STRUCT"), Column("geo.city", "STRING"), Column("geo.at", "STRUCT"),
    Column("geo.at.lat", "FLOAT64"), Column("hits", "ARRAY<STRUCT>"), Column("hits.page", "STRING"),
)  # fmt: skip
_TYPED = (
    Column("geo", "STRUCT<city STRING, at STRUCT<lat FLOAT64>>"),
    Column("hits", "ARRAY<STRUCT<page STRING>>"),
)


def _field(shape: Shape | None, name: str) -> Shape:
    found = shape.field(name) if shape else None
    assert found is not None
    return found


@pytest.mark.parametrize("columns", [_DOTTED, _TYPED])
def test_both_forms_are_read(columns: tuple[Column, ...]) -> None:
    geo, hits = shapes(Table("t", columns))
    assert _field(_field(geo, "at"), "LAT").type == "FLOAT64"
    assert not geo.is_array
    assert hits.is_array
    assert _field(hits.element("h"), "page").is_scalar


def test_a_dot_in_a_name_is_not_a_field() -> None:
    found = shapes(Table("t", (Column("a", "TEXT"), Column("a.b", "TEXT"))))
    assert [shape.name for shape in found] == ["a", "a.b"]


@pytest.mark.parametrize("kind", ["", "RECORD", "ARRAY<", "JSON", "STRUCT", "STRUCT<a>"])
def test_an_unclear_type_holds_nothing_against_a_field(kind: str) -> None:
    assert not shapes(Table("t", (Column("c", kind),)))[0].is_scalar
