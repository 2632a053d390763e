"""Every cell that an engine returns becomes a JSON value."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pytest

from lynx_dspy.answers import cell

OSLO = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("12.50"), 12.5),
        (Decimal("12345678901234567890.1234567891"), "12345678901234567890.1234567891"),
        (Decimal("NaN"), "NaN"),
        (math.inf, None),
        (2**127, 2**127),
        (datetime.datetime(2024, 1, 2, 3, tzinfo=OSLO), "2024-01-02T03:00:00+02:00"),
        (datetime.timedelta(days=33), "33 days, 0:00:00"),
        ((("a", 1), ("b", (b"\xff", None))), [["a", 1], ["b", ["0xff", None]]]),
    ],
)
def test_a_cell_becomes_json(value: Any, expected: object) -> None:
    assert cell(value) == expected
    json.dumps(cell(value), allow_nan=False)
