"""A schema out of CREATE statements in any dialect, with comments and keys; nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from lynx_dspy.engines.ddl_comments import read_comments
from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.grounding.identifiers import NESTED
from lynx_dspy.grounding.sources.naming import distinct_names
from lynx_dspy.grounding.sources.nested import short_type
from lynx_dspy.grounding.sources.reading import Reading, line
from lynx_dspy.values import Column, ForeignKey, Schema, Table

_GUESSES = (
    ("bigquery", r"\bINT64\b|\bFLOAT64\b|\bSTRING\b\s*[,)\n]|STRUCT<|OPTIONS\s*\("),
    ("snowflake", r"\bVARIANT\b|\bNUMBER\(\d+|TIMESTAMP_NTZ|CREATE\s+OR\s+REPLACE\s+TABLE"),
    ("mysql", r"\bENGINE\s*=|\bAUTO_INCREMENT\b|\bUNSIGNED\b"),
    (
        "postgres",
        r"\b(BIG)?SERIAL\b|::|\bTIMESTAMPTZ\b|\bCOMMENT\s+ON\b|character varying|\bJSONB\b",
    ),
    ("tsql", r"\[dbo\]|\bIDENTITY\s*\(|\bNVARCHAR\(MAX\)"),
    ("duckdb", r"\bHUGEINT\b|\bSTRUCT\s*\(|\[\]"),
)
_STARTS = frozenset({TokenType.CREATE, TokenType.ALTER, TokenType.COMMENT})
_FOLDS = {
    NormalizationStrategy.LOWERCASE: str.lower,
    NormalizationStrategy.UPPERCASE: str.upper,
}
"""What an engine makes of an unquoted name; the others store it as it is written."""

_Path = tuple[str, ...]


def guess_dialect(text: str) -> str:
    """The dialect whose words occur in `text` first in our list; `sqlite` if none does.

    >>> guess_dialect("CREATE TABLE t (a INT64)"), guess_dialect("CREATE TABLE t (a INT)")
    ('bigquery', 'sqlite')
    """
    found = (name for name, words in _GUESSES if re.search(words, text, re.I))
    return next(found, "sqlite")


def known_dialect(name: str) -> str:
    """`name` in lower case. Raises `UnknownName` for a dialect that sqlglot does not have."""
    folded = name.strip().casefold()
    if folded not in Dialect.classes or not folded:
        raise UnknownName("dialect", name, sorted(filter(None, Dialect.classes)))
    return folded


def read_ddl(text: str, dialect: str = "", name: str = "", source: str = "The DDL") -> Reading:
    """The tables and views that the statements in `text` create.

    Other statements are passed over; one that cannot be read is a note. Comments of every form
    (`--`, COMMENT '...', OPTIONS(description=...), COMMENT ON) become descriptions. Unquoted names
    get the case that the dialect stores. `source` is for messages. Raises `BadInput` if no table
    comes out.
    """
    dialect = known_dialect(dialect) if dialect else guess_dialect(text)
    reader = _Reader(dialect)
    for statement, about in _statements(text, dialect, source):
        reader.take(statement, about)
    if not reader.tables:
        why = reader.notes[0] if reader.notes else "there is no CREATE TABLE in it"
        raise BadInput(f"{source} gives no table: {why}. Read as {dialect}.")
    tables = distinct_names(reader.tables.values())
    return Reading(
        Schema(dialect, tables, tuple(reader.foreign_keys(tables)), name), tuple(reader.notes)
    )


def _statements(text: str, dialect: str, source: str) -> Iterator[tuple[str, str]]:
    """Each CREATE, ALTER or COMMENT statement, and the comments that stand right before it."""
    try:
        tokens = sqlglot.tokenize(text, read=dialect)
    except SqlglotError as error:
        why = line(str(error))[:200]
        raise BadInput(f"{source} cannot be read as {dialect}: {why}.") from None
    begin, before = None, 0
    for token in [*tokens, None]:
        ends = token is None or token.token_type is TokenType.SEMICOLON
        if not ends and token is not None and begin is None:
            begin = token
        if ends:
            end = token.start if token is not None else len(text)
            if begin is not None and begin.token_type in _STARTS:
                yield (
                    text[begin.start : end],
                    _comments_before(text[before : begin.start], before > 0),
                )
            begin, before = None, end + 1


def _comments_before(gap: str, follows: bool) -> str:
    """The comments of a gap, without those above a blank line and behind the statement before."""
    below = gap.partition("\n")[2] if follows else gap
    return re.split(r"\n\s*\n", below)[-1]


@dataclass(slots=True)
class _Key:
    """A foreign key with the path of the table it refers to, which may be written shortened."""

    path: _Path
    columns: _Path
    ref_path: _Path
    ref_columns: _Path


@dataclass(slots=True)
class _Reader:
    dialect: str
    tables: dict[_Path, Table] = field(default_factory=dict)
    keys: list[_Key] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def take(self, statement: str, about: str) -> None:
        """Add what one statement says, or a note if it cannot be read."""
        try:
            tree = sqlglot.parse_one(statement, read=self.dialect)
        except (SqlglotError, RecursionError) as error:
            first = line(re.sub(r"\x1b\[\d+m", "", str(error)).split("\n")[0]) or "too deep"
            self.notes.append(f"{line(statement)[:60]!r} was passed over ({first[:120]})")
            return
        if isinstance(tree, exp.Create) and tree.kind in ("TABLE", "VIEW"):
            self._create(tree, statement, about)
        elif isinstance(tree, exp.Comment):
            self._comment(tree)
        elif isinstance(tree, exp.Alter):
            self._alter(tree)
        elif isinstance(tree, exp.Command) and re.match(r"create\s+\S*\s*table", statement, re.I):
            self.notes.append(f"{line(statement)[:60]!r} was passed over (not understood)")

    def _create(self, tree: exp.Create, statement: str, about: str) -> None:
        body = tree.this
        target = body.this if isinstance(body, exp.Schema) else body
        if not isinstance(target, exp.Table):
            return
        path = self._path(target)
        said = read_comments(about + statement)
        items = body.expressions if isinstance(body, exp.Schema) else []
        columns = [c for item in items for c in self._columns(item, said.columns)]
        columns = columns or [Column(n, "") for n in _outputs(tree.expression)]
        if not columns:
            self.notes.append(f"{'.'.join(path)}: its columns are not named; left out")
            return
        self.tables[path] = Table(
            name=path[-1],
            columns=tuple(columns),
            description=_option(tree) or said.table,
            namespace=".".join(path[:-1]),
            primary_key=self._primary_key(items),
            is_view=tree.kind == "VIEW",
            path=path,
        )
        self._foreign_keys(path, items)

    def _columns(self, item: exp.Expr, comments: dict[str, str]) -> Iterator[Column]:
        if isinstance(item, exp.Identifier):
            yield Column(self._name(item), "")
        if not isinstance(item, exp.ColumnDef):
            return
        name = self._name(item.this)
        kind = item.args.get("kind")
        marks = [c.kind for c in item.constraints]
        text = next((m.name for m in marks if isinstance(m, exp.CommentColumnConstraint)), "")
        strict = any(
            isinstance(m, exp.NotNullColumnConstraint) and not m.args.get("allow_null")
            for m in marks
        )
        yield Column(
            name=name,
            type=self._type(kind),
            description=line(text) or _option(item) or comments.get(item.name.casefold(), ""),
            nullable=not strict,
        )
        if kind is not None and self.dialect in NESTED:
            yield from self._fields(name, kind)

    def _fields(self, name: str, kind: exp.Expr) -> Iterator[Column]:
        """The fields of a struct or of an array of structs, as columns with dotted names."""
        for inner in kind.expressions:
            if isinstance(inner, exp.ColumnDef):
                yield from (replace(c, name=f"{name}.{c.name}") for c in self._columns(inner, {}))
            elif isinstance(inner, exp.DataType):
                yield from self._fields(name, inner)

    def _type(self, kind: exp.Expr | None) -> str:
        text = kind.sql(dialect=self.dialect) if kind is not None else ""
        return short_type(text) if self.dialect in NESTED else text

    def _primary_key(self, items: list[exp.Expr]) -> _Path:
        for item in items:
            if isinstance(item, exp.ColumnDef) and item.find(exp.PrimaryKeyColumnConstraint):
                return (self._name(item.this),)
            for key in item.find_all(exp.PrimaryKey):
                return tuple(self._name(i) for i in key.find_all(exp.Identifier))
        return ()

    def _foreign_keys(self, path: _Path, items: list[exp.Expr]) -> None:
        for item in items:
            for key in item.find_all(exp.ForeignKey):
                columns = tuple(self._name(i) for i in key.expressions)
                self._refer(path, columns, key.args.get("reference"))
            if isinstance(item, exp.ColumnDef):
                self._refer(path, (self._name(item.this),), item.find(exp.Reference))

    def _refer(self, path: _Path, columns: _Path, reference: exp.Expr | None) -> None:
        target = reference.find(exp.Table) if reference is not None else None
        if reference is None or target is None:
            return
        named = reference.this.expressions if isinstance(reference.this, exp.Schema) else []
        names = tuple(self._name(i) for i in named)
        self.keys.append(_Key(path, columns, self._path(target), names))

    def _comment(self, tree: exp.Comment) -> None:
        text = line(tree.expression.name)
        kind, target = tree.args.get("kind"), tree.this
        if kind == "TABLE" and isinstance(target, exp.Table):
            table = self._find(self._path(target))
            if table:
                self.tables[table.path] = replace(table, description=text)
        elif kind == "COLUMN" and isinstance(target, exp.Column):
            names = [self._name(part) for part in target.parts]
            table = self._find(tuple(names[:-1]))
            if table:
                columns = tuple(
                    replace(c, description=text) if c.name == names[-1] else c
                    for c in table.columns
                )
                self.tables[table.path] = replace(table, columns=columns)

    def _alter(self, tree: exp.Alter) -> None:
        table = self._find(self._path(tree.this)) if isinstance(tree.this, exp.Table) else None
        if table is None:
            return
        actions = tree.args.get("actions") or []
        key = self._primary_key(actions)
        if key:
            self.tables[table.path] = replace(table, primary_key=key)
        self._foreign_keys(table.path, actions)

    def foreign_keys(self, tables: tuple[Table, ...]) -> Iterator[ForeignKey]:
        """The keys between tables that are there; without columns the primary key is meant."""
        names = {table.parts: table.name for table in tables}
        for key in self.keys:
            ref = self._find(key.ref_path)
            columns = key.ref_columns or (ref.primary_key if ref else ())
            if ref is None or len(columns) != len(key.columns):
                missing = ".".join(key.ref_path)
                self.notes.append(f"{'.'.join(key.path)}: its key to {missing} leads nowhere")
                continue
            yield ForeignKey(names[key.path], key.columns, names[ref.path], columns)

    def _find(self, path: _Path) -> Table | None:
        """The table of this path, or the only one whose path ends like it, in any case."""
        if path in self.tables:
            return self.tables[path]
        end = tuple(p.casefold() for p in path)
        fits = [
            t for p, t in self.tables.items() if tuple(x.casefold() for x in p[-len(end) :]) == end
        ]
        return fits[0] if end and len(fits) == 1 else None

    def _path(self, table: exp.Table) -> _Path:
        return tuple(
            self._name(part) if isinstance(part, exp.Identifier) else part.name
            for part in table.parts
        )

    def _name(self, node: exp.Expr) -> str:
        """The name as the engine stores it."""
        rules = Dialect.get_or_raise(self.dialect)
        inner = node if isinstance(node, exp.Identifier) else node.find(exp.Identifier)
        if inner is None or inner.args.get("quoted"):
            return node.name
        fold = _FOLDS.get(rules.normalization_strategy, str)
        return fold(node.name)


def _option(node: exp.Expr) -> str:
    """OPTIONS(description="...") or COMMENT '...' of a table or column itself."""
    owner = node.args.get("properties") if isinstance(node, exp.Create) else None
    places = owner.expressions if owner is not None else getattr(node, "constraints", [])
    for place in places:
        if isinstance(place, exp.SchemaCommentProperty):
            return line(place.this.name)
        for pair in place.find_all(exp.EQ, exp.Property):
            if pair.name.casefold() == "description":
                value = pair.expression if isinstance(pair, exp.EQ) else pair.args.get("value")
                return line(value.name) if value is not None else ""
    return ""


def _outputs(query: exp.Expr | None) -> list[str]:
    if not isinstance(query, exp.Query) or query.is_star:
        return []
    return [name for name in query.named_selects if name]
