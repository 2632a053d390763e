"""Columns that a program names: which frame each expression is, as far as it can be told.

A program is walked in order. What is not understood is an unknown frame, of which nothing is said,
so that a right program is not called wrong.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lynx_dspy.engines.python.frame_calls import ADDS, CHECKED, KEPT, constants, literal_map
from lynx_dspy.values import Schema


@dataclass(eq=False)
class Frame:
    """A DataFrame with the columns it has; `is_open` says that it may have others, too."""

    columns: set[str]
    is_open: bool = False
    label: str = ""

    def copy(self) -> Frame:
        """Another frame of the same columns."""
        return Frame(set(self.columns), self.is_open, self.label)


@dataclass(frozen=True, eq=False)
class View:
    """`frame.loc`, or a group-by of a frame: its names are the frame's."""

    kind: str
    frame: Frame


Value = Frame | View | None


@dataclass(frozen=True, slots=True)
class Miss:
    """A column that is not there: the node that names it, and the frame that lacks it."""

    node: ast.Constant | ast.Attribute
    name: str
    frame: Frame


def misses(tree: ast.Module, schema: Schema) -> list[Miss]:
    """Every name of a column that its frame cannot have, in the order of the program."""
    walker = _Walker(schema)
    walker.block(tree.body)
    return list({id(miss.node): miss for miss in reversed(walker.found)}.values())[::-1]


@dataclass
class _Walker:
    schema: Schema
    found: list[Miss] = field(default_factory=list)
    frames: dict[str, Value] = field(default_factory=dict)
    depth: int = 0

    def __post_init__(self) -> None:
        self.tables = {
            t.name: Frame({c.name for c in t.columns}, label=t.name) for t in self.schema.tables
        }
        self.frames.update({n: f for n, f in self.tables.items() if n.isidentifier()})

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self.bind(target, value)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            return
        elif isinstance(node, ast.For):
            self.value(node.iter)
            self.bind(node.target, None)
            self.branch(node.body, node.orelse)
        elif isinstance(node, ast.If | ast.While):
            self.value(node.test)
            self.branch(node.body, node.orelse)
        elif isinstance(node, ast.Try):
            self.branch(node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.value(child)
                elif isinstance(child, ast.stmt):
                    self.branch([child])

    def branch(self, *bodies: list[ast.stmt]) -> None:
        """Bodies that may or may not run: what they bind anew is unknown afterwards."""
        self.depth += 1
        for body in bodies:
            self.block(body)
        self.depth -= 1

    def bind(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.frames[target.id] = None if self.depth else value
        elif isinstance(target, ast.Subscript):
            frame = self.value(target.value)
            names = constants(_column_part(target.slice, frame))
            if isinstance(frame, View):
                frame = frame.frame
            if isinstance(frame, Frame):
                frame.columns.update(str(n.value) for n in names)
                frame.is_open = frame.is_open or not names
        elif isinstance(target, ast.Attribute):
            frame = self.value(target.value)
            if isinstance(frame, Frame):
                frame.is_open = True
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self.bind(part, None)

    def value(self, node: ast.expr | None) -> Value:
        if node is None:
            return None
        if rule := _RULES.get(type(node)):
            return rule(self, node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
            elif isinstance(child, ast.keyword):
                self.value(child.value)
        return None

    def name(self, node: ast.Name) -> Value:
        return self.frames.get(node.id)

    def inner(self, node: ast.expr) -> Value:
        """A lambda or comprehension: its own names hide those outside."""
        own = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not _is_load(n)}
        own |= {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}
        kept = self.frames
        self.frames = {n: None if n in own else v for n, v in kept.items()}
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
            elif isinstance(child, ast.comprehension):
                for part in (child.iter, *child.ifs):
                    self.value(part)
        self.frames = kept
        return None

    def subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        if isinstance(node.value, ast.Name) and node.value.id == "tables":
            named = node.slice.value if isinstance(node.slice, ast.Constant) else None
            return self.tables.get(str(named))
        if base is None:
            return self.value(node.slice)
        frame = base.frame if isinstance(base, View) else base
        part = _column_part(node.slice, base)
        names = constants(part)
        if names:
            self.require(names, frame)
            if isinstance(node.slice, ast.Tuple):
                self.value(node.slice.elts[0])
            kept = isinstance(part, ast.List) and not _is_group(base)
            return Frame({str(n.value) for n in names}, label=frame.label) if kept else None
        self.value(node.slice)
        return frame.copy() if _is_mask(part) and not _is_group(base) else None

    def attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        if base is None:
            return None
        frame = base.frame if isinstance(base, View) else base
        if node.attr in ("loc", "at") and isinstance(base, Frame):
            return View(node.attr, frame)
        if node.attr not in frame.columns and not frame.is_open and node.attr not in _members():
            self.found.append(Miss(node, node.attr, frame))
        return None

    def call(self, node: ast.Call) -> Value:
        called = node.func
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if not isinstance(called, ast.Attribute):
            for value in [self.value(a) for a in arguments]:
                if isinstance(value, Frame):  # a function may add columns to what it is given
                    value.is_open = True
            return None
        if isinstance(called.value, ast.Name) and called.value.id in ("pd", "pandas"):
            return self.of_pandas(called.attr, node)
        receiver = self.value(called.value)
        if receiver is None:
            for argument in arguments:
                self.value(argument)
            return None
        self.attribute_of(called, receiver)
        return self.method(called.attr, receiver, node)

    def attribute_of(self, called: ast.Attribute, receiver: Frame | View) -> None:
        frame = receiver.frame if isinstance(receiver, View) else receiver
        known = frame.is_open or called.attr in frame.columns
        if not known and called.attr not in _members():
            self.found.append(Miss(called, called.attr, frame))

    def method(self, name: str, receiver: Frame | View, node: ast.Call) -> Value:
        frame = receiver.frame if isinstance(receiver, View) else receiver
        given = {k.arg: k.value for k in node.keywords if k.arg}
        if name in ("merge", "join"):
            return self.merged(receiver, node.args, given) if name == "merge" else None
        for argument in (*node.args, *given.values()):
            self.value(argument)
        for place, keyword in CHECKED.get(name, ()):
            part = given.get(keyword)
            if part is None and place is not None and place < len(node.args):
                part = node.args[place]
            self.require(constants(part), frame)
        if name in ("agg", "aggregate"):
            self.aggregated(node, given, frame)
        if _is_true(given.get("inplace")):
            frame.is_open = True
        if name == "groupby":
            return View("group", frame)
        if isinstance(receiver, View):
            return None
        return self.result(name, frame, node, given)

    def result(self, name: str, frame: Frame, node: ast.Call, given: dict[str, ast.expr]) -> Value:
        """The frame that a method of a frame gives; None where that is not followed."""
        made = frame.copy()
        if name == "rename":
            names = literal_map(given.get("columns"))
            made.is_open = made.is_open or names is None
            made.columns = {(names or {}).get(c, c) for c in made.columns}
        elif name == "drop":
            dropped = constants(given.get("columns"))
            made.columns -= {str(n.value) for n in dropped}
        elif name == "assign":
            made.columns |= given.keys()
            made.is_open = made.is_open or any(k.arg is None for k in node.keywords)
        elif name in ADDS:
            made.is_open = made.is_open or not _is_true(given.get("drop"))
        elif name not in KEPT:
            return None
        return made

    def merged(self, left: Value, rest: list[ast.expr], given: dict[str, ast.expr]) -> Value:
        right = self.value(rest[0] if rest else given.get("right"))
        if not isinstance(left, Frame):
            return None
        on = constants(given.get("on") or (rest[2] if len(rest) > 2 else None))
        lefts, rights = constants(given.get("left_on")), constants(given.get("right_on"))
        self.require([*on, *lefts], left)
        if not isinstance(right, Frame):
            return Frame(set(left.columns), True, left.label)
        self.require([*on, *rights], right)
        shared = left.columns & right.columns
        keys = {str(n.value) for n in on} or (set() if lefts or rights else shared)
        pairs = zip(lefts, rights, strict=False)
        keys |= {str(a.value) for a, b in pairs if a.value == b.value}
        suffixes = constants(given.get("suffixes"))
        ends = [str(s.value) for s in suffixes] if len(suffixes) == 2 else ["_x", "_y"]
        doubled = {f"{name}{end}" for name in shared - keys for end in ends}
        columns = ((left.columns | right.columns) - (shared - keys)) | doubled
        unsure = "suffixes" in given and len(suffixes) != 2
        is_open = left.is_open or right.is_open or unsure or "indicator" in given
        return Frame(columns, is_open)

    def of_pandas(self, name: str, node: ast.Call) -> Value:
        given = {k.arg: k.value for k in node.keywords if k.arg}
        if name == "merge" and node.args:
            left = self.value(node.args[0])
            return self.merged(left, node.args[1:], given)
        values = [self.value(a) for a in (*node.args, *given.values())]
        if name == "concat":
            return None
        for value in values:
            if isinstance(value, Frame):
                value.is_open = value.is_open or name not in _members()
        return None

    def aggregated(self, node: ast.Call, given: dict[str, ast.expr], frame: Frame) -> None:
        """`agg({"column": ...})` and `agg(name=("column", ...))`."""
        for argument in node.args:
            if isinstance(argument, ast.Dict):
                self.require([k for k in argument.keys if _is_text(k)], frame)
        for value in given.values():
            if isinstance(value, ast.Tuple) and value.elts and _is_text(value.elts[0]):
                self.require([value.elts[0]], frame)

    def require(self, names: Sequence[ast.expr | None], frame: Frame) -> None:
        if frame.is_open:
            return
        for node in names:
            if isinstance(node, ast.Constant) and str(node.value) not in frame.columns:
                self.found.append(Miss(node, str(node.value), frame))


_RULES: dict[type[ast.AST], Callable[[_Walker, ast.expr], Value]] = {
    ast.Name: lambda w, n: w.name(n) if isinstance(n, ast.Name) else None,
    ast.Subscript: lambda w, n: w.subscript(n) if isinstance(n, ast.Subscript) else None,
    ast.Attribute: lambda w, n: w.attribute(n) if isinstance(n, ast.Attribute) else None,
    ast.Call: lambda w, n: w.call(n) if isinstance(n, ast.Call) else None,
    ast.Lambda: _Walker.inner,
    ast.ListComp: _Walker.inner,
    ast.SetComp: _Walker.inner,
    ast.DictComp: _Walker.inner,
    ast.GeneratorExp: _Walker.inner,
}


def _column_part(part: ast.expr, base: Value) -> ast.expr | None:
    """The part of a subscript that names columns: of `.loc` the second."""
    if isinstance(base, View) and base.kind in ("loc", "at"):
        pair = isinstance(part, ast.Tuple) and len(part.elts) == 2
        return part.elts[1] if pair and isinstance(part, ast.Tuple) else None
    return part


def _is_mask(part: ast.expr | None) -> bool:
    return part is None or isinstance(
        part, ast.Compare | ast.BinOp | ast.UnaryOp | ast.Call | ast.Slice
    )


def _is_group(base: Value) -> bool:
    return isinstance(base, View) and base.kind == "group"


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _members() -> frozenset[str]:
    """What a DataFrame or a group-by of one has beside its columns."""
    if not _MEMBERS:
        import pandas as pd
        from pandas.api.typing import DataFrameGroupBy

        _MEMBERS.append(frozenset({*dir(pd.DataFrame), *dir(DataFrameGroupBy), *dir(pd)}))
    return _MEMBERS[0]


_MEMBERS: list[frozenset[str]] = []
