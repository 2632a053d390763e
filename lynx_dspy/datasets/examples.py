"""What every example holds, and the only place that says which of it a program may see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import dspy

INPUTS = ("question", "evidence", "database", "documents")
"""The fields that a program is called with; gold is never among them."""


def example(
    *,
    id: str,
    question: str,
    db: str,
    database: str | Path,
    dialect: str,
    rule: str,
    evidence: str = "",
    documents: Iterable[str | Path] = (),
    gold_sql: Iterable[str] = (),
    gold_csv: Iterable[str | Path] = (),
    condition_cols: Sequence[int] | Sequence[Sequence[int]] = (),
    ignore_order: bool = True,
    difficulty: str = "",
    metadata: str | Path = "",
    reason: str = "",
) -> dspy.Example:
    """One question. Paths become texts, so that examples can be copied and written as JSON.

    `database` is what `lynx_dspy.connect` takes, not opened here; it is empty where no engine can
    be reached, and `reason` says why. `documents` are paths of texts for this question. `gold_sql`
    and `gold_csv` are acceptable golds, any may match; `condition_cols` and `ignore_order` belong
    to `gold_csv` (Spider 2.0). `rule` names the rule to judge by, `metadata` a folder that
    describes the database's tables.

    >>> example(id="1", question="q", db="d", database="d.db", dialect="sqlite", rule="bird",
    ...         gold_sql=["SELECT 1"]).inputs().keys()
    ['question', 'database', 'evidence', 'documents']
    """
    return dspy.Example(
        id=id,
        question=question,
        db=db,
        database=str(database),
        dialect=dialect,
        rule=rule,
        evidence=evidence,
        documents=tuple(map(str, documents)),
        gold_sql=tuple(gold_sql),
        gold_csv=tuple(map(str, gold_csv)),
        condition_cols=condition_cols,
        ignore_order=ignore_order,
        difficulty=difficulty,
        metadata=str(metadata),
        reason=reason,
    ).with_inputs(*INPUTS)
