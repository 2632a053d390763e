"""What methods of a DataFrame do with names of columns."""

from __future__ import annotations

import ast

CHECKED: dict[str, tuple[tuple[int | None, str], ...]] = {
    "drop": ((None, "columns"),),
    "drop_duplicates": ((0, "subset"),),
    "dropna": ((None, "subset"),),
    "duplicated": ((0, "subset"),),
    "explode": ((0, "column"),),
    "groupby": ((0, "by"),),
    "melt": ((0, "id_vars"), (1, "value_vars")),
    "nlargest": ((1, "columns"),),
    "nsmallest": ((1, "columns"),),
    "pivot": ((None, "index"), (None, "columns"), (None, "values")),
    "pivot_table": ((0, "values"), (1, "index"), (2, "columns")),
    "set_index": ((0, "keys"),),
    "sort_values": ((0, "by"),),
}
"""Method -> its arguments that name columns, by place and keyword."""

KEPT = frozenset({
    "abs", "astype", "bfill", "clip", "convert_dtypes", "copy", "cumsum", "diff", "drop_duplicates",
    "dropna", "explode", "ffill", "fillna", "head", "infer_objects", "mask", "nlargest",
    "nsmallest", "query", "replace", "round", "sample", "shift", "sort_index", "sort_values",
    "tail", "where",
})  # fmt: skip
"""Methods that give a frame of the same columns."""

ADDS = frozenset({"reset_index", "set_index"})
"""Methods that move columns to the index or back: afterwards others may be there."""


def constants(node: ast.expr | None) -> list[ast.Constant]:
    """The texts of a literal text, list or tuple; empty if one of them is something else.

    >>> [c.value for c in constants(ast.parse("['a', 'b']", mode="eval").body)]
    ['a', 'b']
    """
    items = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    found = [i for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)]
    return found if len(found) == len(items) else []


def literal_map(node: ast.expr | None) -> dict[str, str] | None:
    """A literal dict of texts; None for anything else."""
    if not isinstance(node, ast.Dict):
        return None
    pairs = [k for k in node.keys if k is not None]
    keys, values = constants(ast.List(pairs)), constants(ast.List(node.values))
    if len(keys) != len(node.keys) or len(values) != len(node.values):
        return None
    return {str(k.value): str(v.value) for k, v in zip(keys, values, strict=True)}
