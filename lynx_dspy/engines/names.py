"""Which names a query may use where: sources, frames and near names, case-insensitively.

sqlglot's own `optimizer.scope` compares names with case and refuses twice-used aliases; the
programs that are studied here are wrong in just such ways, so a frame is built without failing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from sqlglot import exp

from lynx_dspy.engines.folding import matches, stored_as
from lynx_dspy.engines.shapes import NESTED, Shape, shapes
from lynx_dspy.values import Schema, Table

PSEUDO_COLUMNS = {
    "sqlite": frozenset({"rowid", "oid", "_rowid_"}),
    "duckdb": frozenset({"rowid"}),
    "bigquery": frozenset({"_table_suffix", "_partitiontime", "_partitiondate", "_file_name"}),
    "snowflake": frozenset({"level", "metadata$filename", "metadata$file_row_number"}),
    "postgres": frozenset({"ctid", "xmin", "xmax", "tableoid", "oid"}),
}
_FLATTENED = ("SEQ", "KEY", "PATH", "INDEX", "VALUE", "THIS")
_SCALAR_LISTS = exp.Split | exp.GenerateSeries | exp.GenerateDateArray | exp.RegexpExtractAll


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


Outputs = tuple[Shape, ...]


class _Builder:
    """Builds frames once each; relations of unfinished (recursive) queries stay unknown."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.built: dict[int, Frame] = {}
        self.open: set[int] = set()

    def frame(self, select: exp.Select) -> Frame:
        if id(select) not in self.built:
            self.open.add(id(select))
            sources: list[Source] = []
            for node in relations(select):
                sources.append(self._source(node, select, sources))
            kept = tuple(sources)
            frame = Frame(select, kept, self._parent(select), _shared(select, kept))
            self.built[id(select)] = frame
            self.open.discard(id(select))
        return self.built[id(select)]

    def _parent(self, select: exp.Select) -> Frame | None:
        child: exp.Expr = select
        above = select.parent
        while above is not None:
            closed = isinstance(above, exp.CTE | exp.From | exp.Join) and child is above.this
            if closed and not isinstance(child, exp.Lateral):
                return None
            if isinstance(above, exp.Select):
                lateral = Frame(above, (Source("", above, None),))
                return lateral if id(above) in self.open else self.frame(above)
            child, above = above, above.parent
        return None

    def _source(self, node: exp.Expr, select: exp.Select, before: list[Source]) -> Source:
        alias = node.alias_or_name
        if isinstance(node, exp.Unnest) and self.schema.dialect == "bigquery":
            return self._unnested(node, select, before)
        if any(node.args.get(arg) for arg in ("pivots", "match_recognize")):
            return Source(alias, node, None)
        if not isinstance(node, exp.Table):
            return self._derived(node)
        if not isinstance(node.this, exp.Identifier):
            return Source(alias, node, None)
        query = None if node.db else cte_of(node)
        if query is not None:
            return _with_names(alias, node, query, self._outputs(query.this))
        table = find_table(self.schema, node)
        columns = None
        if table is not None and self.schema.dialect in NESTED:
            columns = tuple(shape.name for shape in shapes(table))
        elif table is not None:
            columns = tuple(c.name for c in table.columns)
        return Source(alias, node, columns, table)

    def _derived(self, node: exp.Expr) -> Source:
        """A subquery, or rows that a function makes."""
        inner = node.this
        if isinstance(node, exp.Lateral) and isinstance(inner, exp.Subquery):
            return _with_names(node.alias_or_name, node, node, self._outputs(inner))
        if isinstance(node, exp.TableFromRows) and isinstance(inner, exp.Explode):
            return Source(node.alias_or_name, node, _FLATTENED)
        outputs = self._outputs(inner) if isinstance(node, exp.Subquery) else None
        return _with_names(node.alias_or_name, node, node, outputs)

    def _unnested(self, node: exp.Unnest, select: exp.Select, before: list[Source]) -> Source:
        """UNNEST in BigQuery: its alias is a value; the fields of a struct are columns, too."""
        given = node.args.get("alias")
        names = [c.name for c in given.columns] if isinstance(given, exp.TableAlias) else []
        alias = names[0] if names else node.alias
        offset = node.args.get("offset")
        place = (offset.name,) if isinstance(offset, exp.Identifier) else ("offset",)
        own = (*((alias,) if alias else ()), *(place if offset else ()))
        array = node.expressions[0] if node.expressions else None
        shape = self._element(array, select, before) if array is not None else None
        if shape is None or (not shape.fields and not shape.is_scalar):
            return Source(alias, node, None)
        found = {alias.casefold(): shape.element(alias)} if alias else {}
        columns = (*own, *(f.name for f in shape.fields.values()))
        return Source(alias, node, columns, None, {**shape.fields, **found})

    def _element(self, array: exp.Expr, select: exp.Select, before: list[Source]) -> Shape | None:
        """The elements of an array, as one shape."""
        if isinstance(array, _SCALAR_LISTS):
            return Shape("", "STRING")
        if isinstance(array, exp.Array):
            literal = array.expressions and all(
                isinstance(e, exp.Literal | exp.Neg) for e in array.expressions
            )
            return Shape("", "STRING") if literal else None
        path = path_of(array)
        parent = self._parent(select) if path else None
        around = [level.sources for level in parent.lineage] if parent else []
        shape = shape_of(path, [before, *around]) if path else None
        return shape.element("") if shape is not None and shape.is_array else None

    def _outputs(self, query: exp.Expr) -> Outputs | None:
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select) or id(query) in self.open or query.args.get("kind"):
            return None
        found: list[Shape] = []
        for item in query.expressions:
            shapes_ = self._starred(item, query) if item.is_star else self._named(item, query)
            if shapes_ is None:
                return None
            found += shapes_
        return tuple(found)

    def _named(self, item: exp.Expr, query: exp.Select) -> list[Shape]:
        inner = item.unalias()
        path = path_of(inner)
        name = item.alias_or_name or item.sql(self.schema.dialect)
        alias = item.args.get("alias") if isinstance(item, exp.Alias) else None
        node = alias if alias is not None else getattr(inner, "this", None)
        if isinstance(inner, exp.Dot) and alias is None:
            name = path[-1] if path else name
        elif isinstance(node, exp.Identifier):
            name = stored_as(node, self.schema.dialect)
        if self.schema.dialect not in NESTED or not path:
            return [Shape(name)]
        known = shape_of(path, [level.sources for level in self.frame(query).lineage])
        return [Shape(name, known.type, known.fields) if known else Shape(name)]

    def _starred(self, item: exp.Expr, query: exp.Select) -> list[Shape] | None:
        """The columns of a star; None if they cannot be known."""
        star = item.this if isinstance(item, exp.Column) else item
        if star.args.get("rename") or star.args.get("ilike"):
            return None
        left_out = {e.name.casefold() for e in star.args.get("except_") or ()}
        sources = self.frame(query).sources
        if isinstance(item, exp.Column):
            sources = tuple(s for s in sources if s.alias.casefold() == item.table.casefold())
            if not sources:
                return None
        found: list[Shape] = []
        for source in sources:
            if source.columns is None:
                return None
            found += [source.shape(name) or Shape(name) for name in source.columns]
        return [shape for shape in found if shape.name.casefold() not in left_out]


def _with_names(alias: str, node: exp.Expr, named: exp.Expr, outputs: Outputs | None) -> Source:
    """A source with the outputs of a query, renamed by the column list of `named`."""
    names = _renamed(named, tuple(shape.name for shape in outputs) if outputs else None)
    if outputs is None or names is None:
        return Source(alias, node, names)
    pairs = zip(names, outputs, strict=False)
    return Source(alias, node, names, None, {n.casefold(): shape for n, shape in pairs})


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
