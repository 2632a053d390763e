"""Pages: text from outside stays text."""

from __future__ import annotations

from typing import Any, cast

from lynx_dspy.datasets.examples import example
from lynx_dspy.optimize.pages import error_page
from lynx_dspy.optimize.recording import blank
from lynx_dspy.optimize.records import Record


def failure(**fields: Any) -> Record:
    one = example(id="1", question="<b>why|\n# not", db="d", database="", dialect="", rule="bird")
    clip = {"columns": ["a|b"], "rows": [["x\ny"], ["<i>"]], "row_count": 9, "error": ""}
    found: Any = blank(one) | {
        "status": "ok",
        "scores": {"ex": 0.0},
        "code": "SELECT 1 -- ```\n# no heading",
        "failure": {
            "kind": "values",
            "difference": "",
            "gold_code": "SELECT 2",
            "gold": clip,
            "predicted": clip | {"rows": [], "row_count": 0, "error": "no such column: z"},
        },
    }
    return cast(Record, found | fields)


def test_a_failure_is_shown_side_by_side_and_nothing_breaks_out() -> None:
    page = "".join(error_page([failure()]))
    assert "## 1 (d): values\n\n&lt;b>why| # not\n" in page
    assert "````sql\nSELECT 1 -- ```\n# no heading\n````" in page
    assert "| gold, 9 rows | predicted, 0 rows |\n|---|---|\n" in page
    assert "| a\\|b | no such column: z |\n| x y |  |\n| &lt;i> |  |\n| … |  |" in page


def test_what_was_not_scored_is_listed_by_reason() -> None:
    lost = [
        failure(id=str(n), status="unavailable", error="gone", failure=None, scores={})
        for n in range(12)
    ]
    page = "".join(error_page(lost))
    assert "- 12 unavailable: gone (ids 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …)" in page
    assert "\n## " not in page
