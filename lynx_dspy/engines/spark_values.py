"""Spark's rows as Python values: structs and maps as pairs, times with a zone in UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lynx_dspy.values import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

Convert = Callable[[Any], Any]


def plain_rows(frame: DataFrame) -> Iterator[Row]:
    """The rows of a frame, part by part, so that no more of them are held than are read."""
    frame = _without_months(frame)
    converts = [_converter(field.dataType) for field in frame.schema.fields]
    for row in frame.toLocalIterator():
        yield tuple(convert(value) for convert, value in zip(converts, row, strict=True))


def _without_months(frame: DataFrame) -> DataFrame:
    """Intervals of years and months as text: PySpark has no Python value for them."""
    from pyspark.sql import types

    fields = frame.schema.fields
    if not any(isinstance(field.dataType, types.YearMonthIntervalType) for field in fields):
        return frame
    numbered = frame.toDF(*(f"c{i}" for i in range(len(fields))))
    return numbered.select(
        *(
            numbered[f"c{i}"].cast("string")
            if isinstance(field.dataType, types.YearMonthIntervalType)
            else numbered[f"c{i}"]
            for i, field in enumerate(fields)
        )
    )


def _converter(kind: DataType) -> Convert:
    """What makes a plain value of one of this type."""
    from pyspark.sql import types

    if isinstance(kind, types.ArrayType):
        element = _converter(kind.elementType)
        return _unless_none(lambda items: [element(item) for item in items])
    if isinstance(kind, types.MapType):
        key, value = _converter(kind.keyType), _converter(kind.valueType)
        return _unless_none(lambda pairs: {key(k): value(v) for k, v in pairs.items()})
    if isinstance(kind, types.StructType):
        names = [field.name for field in kind.fields]
        parts = [_converter(field.dataType) for field in kind.fields]
        return _unless_none(
            lambda row: tuple((n, part(v)) for n, part, v in zip(names, parts, row, strict=True))
        )
    by_name: dict[str, Convert] = {"timestamp": _zoned, "binary": bytes, "variant": str}
    return _unless_none(by_name.get(kind.typeName(), lambda value: value))


def _unless_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _zoned(value: datetime) -> datetime:
    """PySpark gives an instant as the clock of this process shows it, without a zone."""
    return value.astimezone(UTC)
