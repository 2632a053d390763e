"""Builds the frames of a query: for each SELECT, the relations that it reads and their columns.

sqlglot's own `optimizer.scope` compares names with case and refuses twice-used aliases; the
programs that are studied here are wrong in just such ways, so a frame is built without failing.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from lynx_dspy.engines.folding import stored_as
from lynx_dspy.engines.names import Frame, Source, cte_of, find_table, path_of, shape_of
from lynx_dspy.engines.shapes import NESTED, Shape, shapes
from lynx_dspy.values import Schema

_FLATTENED = ("SEQ", "KEY", "PATH", "INDEX", "VALUE", "THIS")
_SCALAR_LISTS = exp.Split | exp.GenerateSeries | exp.GenerateDateArray | exp.RegexpExtractAll


def frames(tree: exp.Expr, schema: Schema) -> tuple[Frame, ...]:
    """The frames of all SELECTs in `tree`, outermost first."""
    builder = _Builder(schema)
    return tuple(builder.frame(select) for select in tree.find_all(exp.Select))


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
