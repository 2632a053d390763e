"""Which names a query may use where: sources, frames and near names, case-insensitively.

sqlglot's own `optimizer.scope` compares names with case and refuses twice-used aliases; the
programs that are studied here are wrong in just such ways, so a frame is built without failing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from sqlglot import exp

from lynx_dspy.values import Schema, Table

PSEUDO_COLUMNS = {
    "sqlite": frozenset({"rowid", "oid", "_rowid_"}),
    "duckdb": frozenset({"rowid"}),
    "bigquery": frozenset({"_table_suffix", "_partitiontime", "_partitiondate"}),
}


@lru_cache(maxsize=4096)
def normal(name: str) -> str:
    """A name without case, signs and plural ending.

    >>> normal("Order_Items"), normal("orderItem"), normal("Categories")
    ('orderitem', 'orderitem', 'category')
    """
    text = "".join(c for c in name.casefold() if c.isalnum())
    if text.endswith("ies") and len(text) > 4:
        return text[:-3] + "y"
    if text.endswith("s") and not text.endswith("ss") and len(text) > 3:
        return text[:-1]
    return text


def likeness(left: str, right: str) -> float:
    """How alike two names are, 0 to 1; 1 means equal but for case, signs and plural.

    A shared ending weighs more than a shared beginning: the last word of a name says what it is.
    """
    a, b = normal(left), normal(right)
    if a == b:
        return 1.0
    ratio = difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()
    short, long = sorted((a, b), key=len)
    if len(short) >= 4 and long.endswith(short):
        ratio = max(ratio, 0.82 + 0.15 * len(short) / len(long))
    elif len(short) >= 4 and long.startswith(short):
        ratio = max(ratio, 0.72 + 0.18 * len(short) / len(long))
    return min(ratio, 0.99)


def nearest(name: str, options: Iterable[str], floor: float = 0.6) -> tuple[str, ...]:
    """Options at least `floor` alike to `name`, best first, at most four.

    >>> nearest("totl_cents", ["total_cents", "tax_cents", "id"])
    ('total_cents', 'tax_cents')
    """
    scored = [(likeness(name, option), option) for option in dict.fromkeys(options)]
    kept = sorted((pair for pair in scored if pair[0] >= floor), key=lambda pair: -pair[0])
    return tuple(option for _, option in kept[:4])


def best(name: str, options: Iterable[str], floor: float = 0.8, margin: float = 0.05) -> str | None:
    """The one option that `name` can only mean: equal when normalised, else near by a margin.

    >>> best("citation_numb", ["citation_num", "reference_num"])
    'citation_num'
    >>> best("date", ["start_date", "end_date"]) is None
    True
    """
    scored = sorted(((likeness(name, o), o) for o in dict.fromkeys(options)), reverse=True)
    if not scored or scored[0][0] < floor:
        return None
    if len(scored) > 1 and scored[0][0] - scored[1][0] < margin:
        exact = [o for score, o in scored if score == scored[0][0]]
        folded = [o for o in exact if o.casefold() == name.casefold()]
        return folded[0] if len(folded) == 1 else None
    return scored[0][1]


@dataclass(frozen=True, eq=False)
class Source:
    """One relation of a FROM clause. `columns` is None where they cannot be known."""

    alias: str
    node: exp.Expr
    columns: tuple[str, ...] | None
    table: Table | None = None

    @cached_property
    def _folded(self) -> frozenset[str]:
        return frozenset(c.casefold() for c in self.columns or ())

    def has(self, column: str) -> bool:
        """True if the relation has the column, or may have it."""
        return self.columns is None or column.casefold() in self._folded


@dataclass(frozen=True, eq=False)
class Frame:
    """One SELECT with the relations it reads; `parent` is what a correlated subquery also sees."""

    select: exp.Select
    sources: tuple[Source, ...]
    parent: Frame | None = None
    shared: frozenset[str] = field(default_factory=frozenset)

    def source(self, alias: str) -> Source | None:
        """The relation called `alias` here, compared without case."""
        folded = alias.casefold()
        return next((s for s in self.sources if s.alias.casefold() == folded), None)

    def holders(self, column: str) -> tuple[Source, ...]:
        """The relations of this frame that surely have the column."""
        return tuple(s for s in self.sources if s.columns is not None and s.has(column))

    @cached_property
    def outputs(self) -> dict[str, exp.Expr]:
        """Output aliases, folded, with what they stand for."""
        return {
            e.alias.casefold(): e.this for e in self.select.expressions if isinstance(e, exp.Alias)
        }

    @property
    def lineage(self) -> Iterator[Frame]:
        """This frame, then the ones around it."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.parent


def frames(tree: exp.Expr, schema: Schema) -> tuple[Frame, ...]:
    """The frames of all SELECTs in `tree`, outermost first."""
    builder = _Builder(schema)
    return tuple(builder.frame(select) for select in tree.find_all(exp.Select))


def home(node: exp.Expr) -> exp.Select | None:
    """The SELECT whose names `node` uses; None in the ORDER BY of a set operation."""
    above = node.parent
    while above is not None and not isinstance(above, exp.Select | exp.SetOperation):
        above = above.parent
    return above if isinstance(above, exp.Select) else None


def find_table(schema: Schema, node: exp.Table) -> Table | None:
    """The schema's table that `node` names, by bare or qualified name, wildcards included."""
    table = schema.table(node.name)
    if table is None and node.db:
        table = schema.table(f"{node.db}.{node.name}")
    if table is None and node.catalog:
        table = schema.table(f"{node.catalog}.{node.db}.{node.name}")
    if table is None and schema.dialect == "bigquery" and node.name.endswith("*"):
        stem = node.name[:-1].casefold()
        table = next((t for t in schema.tables if t.name.casefold().startswith(stem)), None)
    return table


class _Builder:
    """Builds frames once each; relations of unfinished (recursive) queries stay unknown."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.built: dict[int, Frame] = {}
        self.open: set[int] = set()

    def frame(self, select: exp.Select) -> Frame:
        if id(select) not in self.built:
            self.open.add(id(select))
            sources = tuple(self._source(node) for node in relations(select))
            frame = Frame(select, sources, self._parent(select), _shared(select, sources))
            self.built[id(select)] = frame
            self.open.discard(id(select))
        return self.built[id(select)]

    def _parent(self, select: exp.Select) -> Frame | None:
        child: exp.Expr = select
        above = select.parent
        while above is not None:
            if isinstance(above, exp.CTE | exp.From | exp.Join) and child is above.this:
                return None
            if isinstance(above, exp.Select):
                return None if id(above) in self.open else self.frame(above)
            child, above = above, above.parent
        return None

    def _source(self, node: exp.Expr) -> Source:
        if not isinstance(node, exp.Table):
            inner = node.this if isinstance(node, exp.Subquery) else None
            columns = _renamed(node, self._outputs(inner) if inner is not None else None)
            return Source(node.alias_or_name, node, columns)
        if not isinstance(node.this, exp.Identifier):
            return Source(node.alias_or_name, node, None)
        query = None if node.db else _cte(node)
        if query is not None:
            return Source(node.alias_or_name, node, _renamed(query, self._outputs(query.this)))
        table = find_table(self.schema, node)
        columns = tuple(c.name for c in table.columns) if table else None
        return Source(node.alias_or_name, node, columns, table)

    def _outputs(self, query: exp.Expr) -> tuple[str, ...] | None:
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select) or id(query) in self.open:
            return None
        names: list[str] = []
        for item in query.expressions:
            if not item.is_star:
                names.append(item.alias_or_name or item.sql(self.schema.dialect))
                continue
            inner = self.frame(query).sources
            if isinstance(item, exp.Column):
                inner = tuple(s for s in inner if s.alias.casefold() == item.table.casefold())
            for source in inner:
                if source.columns is None:
                    return None
                names += source.columns
        return tuple(names)


def relations(select: exp.Select) -> Iterator[exp.Expr]:
    """The relations of a SELECT's own FROM, in the order they are written."""
    first = select.args.get("from_")
    roots = [first.this] if first else []
    roots += [join.this for join in select.args.get("joins") or ()]
    roots += select.args.get("laterals") or ()
    for root in roots:
        yield from _unwrapped(root)


def _unwrapped(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table) and not node.alias:
        yield from _unwrapped(node.this)
    else:
        yield node
    for join in node.args.get("joins") or ():
        yield from _unwrapped(join.this)


def _cte(node: exp.Table) -> exp.CTE | None:
    folded, above = node.name.casefold(), node.parent
    while above is not None:
        block = above.args.get("with_")
        for cte in block.expressions if block else ():
            if cte.alias.casefold() == folded:
                found: exp.CTE = cte
                return found
        above = above.parent
    return None


def _renamed(node: exp.Expr, columns: tuple[str, ...] | None) -> tuple[str, ...] | None:
    alias = node.args.get("alias")
    given = tuple(c.name for c in alias.columns) if isinstance(alias, exp.TableAlias) else ()
    if not given:
        return columns
    return given + (columns or ())[len(given) :]


def _shared(select: exp.Select, sources: tuple[Source, ...]) -> frozenset[str]:
    """Columns merged by USING or NATURAL: naming them bare is not ambiguous."""
    names: set[str] = set()
    for join in select.find_all(exp.Join):
        names |= {c.name.casefold() for c in join.args.get("using") or ()}
        if str(join.args.get("method", "")).upper() == "NATURAL":
            for source in sources:
                names |= {c.casefold() for c in source.columns or ()}
    return frozenset(names)
