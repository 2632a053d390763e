"""What to tell a reflective optimizer about a wrong program, in words (for GEPA's `feedback`).

It names what differs from the gold query and never quotes the gold's text beyond names and
clauses. It belongs to training: the program itself never sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from lynx_dspy.errors import BadInput
from lynx_dspy.metrics.linking import home_of, names_used, own_columns, parsed, scopes
from lynx_dspy.values import Schema

if TYPE_CHECKING:
    import dspy

Score = Callable[["dspy.Example", "dspy.Prediction"], float]
Advice = Callable[["dspy.Example", "dspy.Prediction"], str]

_SHOWN = 6
"""Names or conditions listed before the rest is cut off."""


def feedback(gold_sql: str, pred_sql: str, schema: Schema) -> str:
    """Names missed and invented, and the first clause that differs, a sentence each.

    Raises `BadInput` for a gold that does not parse in the schema's dialect.
    """
    gold, pred = parsed(gold_sql, schema), parsed(pred_sql, schema)
    if gold is None:
        raise BadInput(f"The gold query does not parse as {schema.dialect}: {gold_sql[:80]!r}.")
    if pred is None:
        return f"The program is not valid {schema.dialect} SQL; it does not parse."
    wanted, used = names_used(gold, schema), names_used(pred, schema)
    columns = {c for c in wanted.columns if c.partition(".")[0] in used.tables} - used.columns
    sentences = [
        _listed("The schema has no {}.", used.unknown),
        _listed("It does not read the table {}, which is needed.", wanted.tables - used.tables),
        _listed("It reads the table {} without need.", used.tables - wanted.tables),
        _listed("It does not use the column {}, which is needed.", columns),
        _first_difference(_resolved(gold, schema), _resolved(pred, schema)),
    ]
    return " ".join(filter(None, sentences)) or "Names and clauses are as expected."


def as_metric(
    score: Score, advice: Advice | None = None, threshold: float = 1.0
) -> Callable[..., object]:
    """`score` in the form that every DSPy optimizer calls: (example, pred, trace, ...).

    Gathering demos (a trace, no predictor name) gets a plain bool, so that half-right traces are
    not kept; GEPA (a predictor name) gets `dspy.Prediction(score, feedback)`; all others a float.
    """

    def metric(
        example: dspy.Example,
        pred: dspy.Prediction,
        trace: object = None,
        pred_name: str | None = None,
        pred_trace: object = None,
    ) -> object:
        value = score(example, pred)
        if pred_name is not None:
            import dspy

            right = value >= threshold
            text = "Correct." if right or advice is None else advice(example, pred)
            return dspy.Prediction(score=value, feedback=text)
        return value >= threshold if trace is not None else value

    return metric


def _listed(sentence: str, names: frozenset[str] | set[str] | tuple[str, ...]) -> str:
    if not names:
        return ""
    shown = names if isinstance(names, tuple) else sorted(names)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return sentence.format(", ".join(f"`{name}`" for name in shown[:_SHOWN]) + more)


def _resolved(tree: exp.Expr, schema: Schema) -> exp.Expr:
    """A copy in which columns carry their table's own name, so that aliases do not differ."""
    tree = tree.copy()
    for scope in scopes(tree):
        for column in own_columns(scope):
            home = home_of(column, scope, schema)
            if home:
                named = exp.column(column.name.casefold(), table=home.casefold())
                column.replace(named)
    return tree


def _parts(clause: str) -> Callable[[exp.Select], set[str]]:
    """The clause's conditions or expressions as a set of texts, aliases dropped."""

    def parts(select: exp.Select) -> set[str]:
        found = select.args.get(clause)
        if found is None:
            return set()
        if clause in ("where", "having"):
            whole = found.this
            return {_text(c) for c in (whole.flatten() if isinstance(whole, exp.And) else [whole])}
        if isinstance(found, list):
            return {_text(item) for item in found}
        items = found.expressions or [found.args.get("expression")]
        return {_text(item) for item in items if item is not None}

    return parts


def _joined(select: exp.Select) -> set[str]:
    joins = select.args.get("joins") or []
    conditions = [c for join in joins if (c := join.args.get("on")) is not None]
    return {
        " = ".join(sorted((_text(eq.left), _text(eq.right))))
        for condition in conditions
        for eq in condition.find_all(exp.EQ)
    }


_CLAUSES: tuple[tuple[str, Callable[[exp.Select], set[str]]], ...] = (
    ("join condition", _joined),
    ("WHERE", _parts("where")),
    ("GROUP BY", _parts("group")),
    ("HAVING", _parts("having")),
    ("SELECT", _parts("expressions")),
    ("ORDER BY", _parts("order")),
    ("LIMIT", _parts("limit")),
)
"""The clauses in the order in which a database carries them out."""


def _first_difference(gold: exp.Expr, pred: exp.Expr) -> str:
    if type(gold) is not type(pred):
        return f"A {gold.key.upper()} is expected, not a {pred.key.upper()}."
    left, right = gold.find(exp.Select), pred.find(exp.Select)
    if left is None or right is None:
        return ""
    for title, parts in _CLAUSES:
        wanted, had = parts(left), parts(right)
        if wanted != had:
            missing = _listed(f"{title} lacks {{}}.", wanted - had)
            surplus = _listed(f"{title} should not hold {{}}.", had - wanted)
            return f"{missing} {surplus}".strip()
    if bool(left.args.get("distinct")) != bool(right.args.get("distinct")):
        return "DISTINCT is missing." if left.args.get("distinct") else "DISTINCT is not wanted."
    return ""


def _text(node: exp.Expr) -> str:
    return node.unalias().sql(normalize=True, comments=False)
