"""What a program may not do by its text alone: checked before it is run, on every run.

A program that the guard lets pass may still be refused by the sandbox, which is the wall.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lynx_dspy.engines.python import allowed
from lynx_dspy.values import FailureClass, Outcome, Status

LONGEST = 40_000
"""Characters of a program that is looked at."""

_QUERY_METHODS = frozenset({"query", "eval"})
_AT = re.compile(r"@\s*\w+\s*[.(\[]")


@dataclass(frozen=True, slots=True)
class Breach:
    """Something that a program may not do, where it stands, and the name that does it."""

    message: str
    name: str
    line: int = 0
    column: int = 0


def refusal(code: str) -> Outcome | None:
    """The outcome of a program that may not be run; None for one that may.

    >>> refusal("import os").error
    'import of os is not allowed (line 1)'
    """
    if not code.strip():
        return Outcome(Status.NO_PROGRAM, error="there is no program")
    if len(code) > LONGEST:
        return _blocked(f"the program has more than {LONGEST:,} characters")
    tree = parsed(code)
    if isinstance(tree, SyntaxError):
        return Outcome(
            Status.ERROR,
            error=syntax_error(tree),
            failure_class=FailureClass.SYNTAX,
        )
    found = next(breaches(tree), None)
    return _blocked(f"{found.message} (line {found.line})") if found else None


def _blocked(why: str) -> Outcome:
    return Outcome(Status.BLOCKED, error=why, failure_class=FailureClass.SYNTAX)


def parsed(code: str) -> ast.Module | SyntaxError:
    """The program's tree, or why there is none."""
    try:
        return ast.parse(code)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error) or "nested too deeply")


def syntax_error(error: SyntaxError) -> str:
    """A syntax error in one line, with the place.

    >>> syntax_error(parsed("x = (1"))
    "SyntaxError: '(' was never closed (line 1)"
    """
    place = f" (line {error.lineno})" if error.lineno else ""
    return f"SyntaxError: {error.msg}{place}"


def breaches(tree: ast.AST) -> Iterator[Breach]:
    """All that the program may not do, in the order of a walk over its tree."""
    for node in ast.walk(tree):
        rule = _RULES.get(type(node))
        for message, name in rule(node) if rule else ():
            line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1
            yield Breach(message, name, line, column)


Found = Iterator[tuple[str, str]]


def _imports(node: ast.Import) -> Found:
    for alias in node.names:
        if not allowed.is_module_allowed(alias.name):
            yield f"import of {alias.name} is not allowed", alias.name


def _imports_from(node: ast.ImportFrom) -> Found:
    module = node.module or ""
    if node.level:
        yield "relative imports are not allowed", module
    elif not allowed.is_module_allowed(module) and not all(
        allowed.is_module_allowed(f"{module}.{alias.name}") for alias in node.names
    ):
        yield f"import of {module} is not allowed", module
    for alias in node.names:
        yield from _attribute_named(alias.name)
        if alias.name == "*":
            yield f"import names of {module} one by one, not *", "*"


def _names(node: ast.Name) -> Found:
    is_inner = node.id.startswith("__") and node.id not in allowed.NAMES_ALLOWED
    if is_inner or node.id in allowed.BUILTINS_DENIED:
        yield f"{node.id} is not allowed", node.id


def _attributes(node: ast.Attribute) -> Found:
    yield from _attribute_named(node.attr)


def _attribute_named(name: str) -> Found:
    if name in allowed.PRIVATE_ALLOWED:
        return
    if name.startswith("_") or name in allowed.INSIDES or name in allowed.HIDDEN_PARTS:
        yield f"attribute {name} is not allowed", name
    elif name in allowed.READERS or name.startswith("read_"):
        yield f"{name} is not allowed: the tables are there by name", name
    elif name in allowed.WRITERS:
        yield f"{name} is not allowed: programs write no files", name


def _calls(node: ast.Call) -> Found:
    called = node.func
    if isinstance(called, ast.Name) and called.id in allowed.BY_LITERAL:
        named = node.args[1] if len(node.args) > 1 else None
        if not isinstance(named, ast.Constant) or not isinstance(named.value, str):
            yield f"{called.id} is allowed with a literal name only", called.id
        else:
            yield from _attribute_named(named.value)
    if isinstance(called, ast.Attribute) and called.attr in _QUERY_METHODS:
        yield from _expressions(node, called.attr)


def _expressions(node: ast.Call, name: str) -> Found:
    """pandas evaluates the text of `query` and `eval` as a program of its own."""
    text = node.args[0] if node.args else None
    if isinstance(text, ast.JoinedStr):
        parts = [p.value for p in text.values if isinstance(p, ast.Constant)]
    elif isinstance(text, ast.Constant):
        parts = [text.value]
    else:
        parts = [None]
    for part in parts:
        if not isinstance(part, str) or "__" in part or _AT.search(part):
            yield f"{name} takes a plain literal expression only", name


_RULES: dict[type[ast.AST], Callable[[Any], Found]] = {
    ast.Import: _imports,
    ast.ImportFrom: _imports_from,
    ast.Name: _names,
    ast.Attribute: _attributes,
    ast.Call: _calls,
}
