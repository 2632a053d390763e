"""Which names a query may use where: sources, frames and near names, case-insensitively."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from sqlglot import exp

from lynx_dspy.engines.folding import matches
from lynx_dspy.engines.shapes import Shape, shapes
from lynx_dspy.values import Schema, Table

PSEUDO_COLUMNS = {
    "sqlite": frozenset({"rowid", "oid", "_rowid_"}),
    "duckdb": frozenset({"rowid"}),
    "bigquery": frozenset({"_table_suffix", "_partitiontime", "_partitiondate", "_file_name"}),
    "snowflake": frozenset({"level", "metadata$filename", "metadata$file_row_number"}),
    "postgres": frozenset({"ctid", "xmin", "xmax", "tableoid", "oid"}),
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
    """One relation of a FROM clause. `columns` is None where they cannot be known.

    `derived` are the shapes of a subquery's outputs, as far as they are known, by folded name.
    """

    alias: str
    node: exp.Expr
    columns: tuple[str, ...] | None
    table: Table | None = None
    derived: Mapping[str, Shape] = field(default_factory=dict)

    def shape(self, column: str) -> Shape | None:
        """What is known of a column's type and fields; None if it is nothing."""
        return self._shapes.get(column.casefold())

    @cached_property
    def _shapes(self) -> Mapping[str, Shape]:
        if self.table is None or not isinstance(self.node, exp.Table):
            return self.derived
        return {shape.name.casefold(): shape for shape in shapes(self.table)}

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

    def unsure(self, column: exp.Column) -> bool:
        """True if a relation whose columns are not known may have the column.

        The argument of UNNEST does not see what comes out of it.
        """
        own = column.find_ancestor(exp.Unnest)
        return any(s.columns is None and (own is None or s.node is not own) for s in self.sources)

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


def home(node: exp.Expr) -> exp.Select | None:
    """The SELECT whose names `node` uses; None in the ORDER BY of a set operation."""
    above = node.parent
    while above is not None and not isinstance(above, exp.Select | exp.SetOperation):
        above = above.parent
    return above if isinstance(above, exp.Select) else None


def find_table(schema: Schema, node: exp.Table) -> Table | None:
    """The schema's table that `node` names, by bare or qualified name, wildcards included.

    None where a name may mean tables of several namespaces.
    """
    table = schema.table(node.name) if not node.db else None
    if table is not None:
        return table
    found = matches(schema, node)
    if not found:
        return schema.table(".".join(part.name for part in node.parts))
    wild = node.name.endswith("*")
    return found[0] if len(found) == 1 or (wild and found) else None


def path_of(column: exp.Expr) -> tuple[str, ...]:
    """The names of a dotted reference, outermost first; empty if it is not one.

    >>> import sqlglot
    >>> path_of(sqlglot.parse_one("a.b.c.d.e"))
    ('a', 'b', 'c', 'd', 'e')
    """
    if isinstance(column, exp.Column):
        return tuple(part.name for part in column.parts)
    if isinstance(column, exp.Dot):
        inner = path_of(column.this)
        named = isinstance(column.expression, exp.Identifier)
        return (*inner, column.expression.name) if inner and named else ()
    return ()


def shape_of(path: tuple[str, ...], levels: Iterable[Iterable[Source]]) -> Shape | None:
    """The shape that a dotted reference leads to, alias first; None if it is not known."""
    for sources in levels:
        for source in sources:
            qualified = len(path) > 1 and source.alias.casefold() == path[0].casefold()
            for names in (path[1:] if qualified else (), path):
                shape = source.shape(names[0]) if names else None
                for name in names[1:]:
                    shape = shape.field(name) if shape else None
                if shape is not None:
                    return shape
    return None


def cte_of(node: exp.Table) -> exp.CTE | None:
    """The common table expression in scope that a bare name means."""
    folded, above = node.name.casefold(), node.parent
    while above is not None:
        block = above.args.get("with_")
        for cte in block.expressions if block else ():
            if cte.alias.casefold() == folded:
                found: exp.CTE = cte
                return found
        above = above.parent
    return None
