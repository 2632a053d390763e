"""Rules for dates: parts, starts, shifts, differences and formats, as SQLite writes them."""

from __future__ import annotations

import re

from sqlglot import exp

from lynx_dspy.engines import spelling
from lynx_dspy.engines.framing import frames
from lynx_dspy.engines.names import Frame, home
from lynx_dspy.values import Schema

DATE_CALLS = {"DATE", "DATETIME"}


_UNIT = re.compile(r"^(YEAR|QUARTER|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND)S?$", re.IGNORECASE)


_AMOUNT = re.compile(r"^\s*([+-]?\d+)\s+(\w+)\s*$")


class Types:
    """Declared types of the columns of one program."""

    def __init__(self, tree: exp.Expr, schema: Schema) -> None:
        self._frames: dict[int, Frame] = {id(f.select): f for f in frames(tree, schema)}

    def of(self, column: exp.Column) -> str:
        """The declared type in upper case; empty if it cannot be known."""
        select = home(column)
        frame = self._frames.get(id(select)) if select is not None else None
        for level in frame.lineage if frame else ():
            for source in level.sources:
                if column.table and source.alias.casefold() != column.table.casefold():
                    continue
                found = source.table.column(column.name) if source.table else None
                if found is not None:
                    return found.type.upper()
        return ""

    def is_date(self, node: exp.Expr) -> bool:
        """True for what surely is a date or a time."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            return self.of(node).startswith(("DATE", "TIMESTAMP"))
        if isinstance(node, exp.Cast):
            return bool(node.is_type("date", "datetime", "timestamp", "timestamptz"))
        if isinstance(node, exp.Max | exp.Min):
            return self.is_date(node.this)
        known = exp.CurrentDate | exp.CurrentTimestamp | exp.Date | exp.TsOrDsToDate
        return isinstance(node, known) or called(node) in DATE_CALLS


def called(node: exp.Expr | None) -> str:
    return node.name.upper() if isinstance(node, exp.Anonymous) else ""


def _unit(node: exp.Expr | None) -> str:
    found = _UNIT.match(node.name) if node is not None else None
    return found.group(1).upper() if found else ""


def _is_days(node: exp.Expr) -> bool:
    """True for a difference of Julian days, as the rules write it."""
    inner = node.unnest()
    return isinstance(inner, exp.Sub) and called(inner.this) == "JULIANDAY"


def _part(unit: str, of: exp.Expr, types: Types) -> exp.Expr | None:
    inner = of.unnest()
    if isinstance(inner, exp.Sub) and _is_days(inner):
        return spelling.fill(spelling.SPANS[unit], x=inner) if unit in spelling.SPANS else None
    if isinstance(inner, exp.Column) and "INT" in types.of(inner):
        return inner.copy() if unit.casefold() in inner.name.casefold() else None
    return spelling.fill(spelling.PARTS[unit], x=of) if unit in spelling.PARTS else None


def parts(node: exp.Expr, types: Types) -> exp.Expr | None:
    if isinstance(node, exp.Extract):
        return _part(node.this.name.upper(), node.expression, types)
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 2:
        unit, of = node.expressions
        if called(node) in ("DATE_PART", "DATEPART"):
            return _part(unit.name.upper(), of, types)
    if called(node) in spelling.PARTS and len(node.expressions) == 1:
        return _part(called(node), node.expressions[0], types)
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        unit = node.sql_name().replace("_", "")
        if unit in spelling.PARTS and isinstance(node.this, exp.Expr):
            return _part(unit, node.this, types)
    return None


def truncated(node: exp.Expr, types: Types) -> exp.Expr | None:
    if not isinstance(node, exp.DateTrunc | exp.TimestampTrunc | exp.DatetimeTrunc):
        return None
    start = spelling.STARTS.get(_unit(node.args.get("unit")))
    return spelling.fill(start, x=node.this) if start else None


def shifted(base: exp.Expr, amount: exp.Expr, unit: str, sign: int) -> exp.Expr | None:
    """`base` moved by `sign * amount` units, in the form DATE(base, '-3 months')."""
    factor, unit = {"WEEK": (7, "DAY"), "QUARTER": (3, "MONTH")}.get(unit, (1, unit))
    number = amount.unnest()
    negative = isinstance(number, exp.Neg)
    text = number.this.name if negative else number.name
    if text.lstrip("+-").isdigit() and isinstance(number, exp.Literal | exp.Neg):
        steps = sign * factor * int(text) * (-1 if negative else 1)
        modifier: exp.Expr = exp.Literal.string(f"{steps:+d} {unit.lower()}s")
    else:
        modifier = exp.DPipe(
            this=exp.paren(exp.Mul(this=exp.paren(number.copy()), expression=_int(sign * factor))),
            expression=exp.Literal.string(f" {unit.lower()}s"),
        )
    return _with_modifier(base.unnest(), modifier, timed=unit in ("HOUR", "MINUTE", "SECOND"))


def _with_modifier(base: exp.Expr, modifier: exp.Expr, timed: bool) -> exp.Expr:
    parts = [base.copy()]
    name = "DATETIME" if timed else "DATE"
    if isinstance(base, exp.CurrentDate | exp.CurrentTimestamp):
        parts = [exp.Literal.string("now")]
    elif isinstance(base, exp.Cast | exp.Date):
        parts = [base.this.copy()]
    elif called(base) in DATE_CALLS:
        parts = [e.copy() for e in base.expressions]
        name = "DATETIME" if called(base) == "DATETIME" else name
    return exp.Anonymous(this=name, expressions=[*parts, modifier])


def _int(value: int) -> exp.Expr:
    literal = exp.Literal.number(abs(value))
    return exp.Neg(this=literal) if value < 0 else literal


def _interval(node: exp.Expr | None) -> tuple[exp.Expr, str] | None:
    """Amount and unit of an INTERVAL, or of a text such as '1 month'."""
    if isinstance(node, exp.Interval) and node.this is not None:
        found = _AMOUNT.match(node.this.name)
        if found and _UNIT.match(found.group(2)) and not node.args.get("unit"):
            return exp.Literal.number(found.group(1)), _UNIT.sub(r"\1", found.group(2)).upper()
        return (node.this, _unit(node.args.get("unit"))) if _unit(node.args.get("unit")) else None
    if isinstance(node, exp.Literal) and node.is_string:
        found = _AMOUNT.match(node.name)
        if found and _UNIT.match(found.group(2)):
            return exp.Literal.number(found.group(1)), _UNIT.sub(r"\1", found.group(2)).upper()
    return None


def arithmetic(node: exp.Expr, types: Types) -> exp.Expr | None:
    """date +- interval."""
    if not isinstance(node, exp.Add | exp.Sub) or not isinstance(node.expression, exp.Interval):
        return None
    step = _interval(node.expression)
    return shifted(node.this, *step, -1 if isinstance(node, exp.Sub) else 1) if step else None


def bare_arithmetic(node: exp.Expr, types: Types) -> exp.Expr | None:
    """date +- days, date - date, date + '1 month': SQLite would compute with the year's number."""
    if not isinstance(node, exp.Add | exp.Sub) or not types.is_date(node.this):
        return None
    sign = -1 if isinstance(node, exp.Sub) else 1
    if sign < 0 and types.is_date(node.expression):
        return spelling.fill(spelling.DAYS, a=node.this, b=node.expression)
    if isinstance(node.expression, exp.Literal):
        step = _interval(node.expression)
        if step is None and node.expression.is_int:
            step = (node.expression, "DAY")
        return shifted(node.this, *step, sign) if step else None
    return None


def added(node: exp.Expr, types: Types) -> exp.Expr | None:
    """DATE_ADD, DATE_SUB, DATEADD in all their orders of arguments."""
    sign = -1 if isinstance(node, exp.DateSub) else 1
    if isinstance(node, exp.DateAdd | exp.DateSub | exp.TsOrDsAdd):
        step = _interval(node.expression)
        if step is not None:
            return shifted(node.this, *step, sign)
        if node.expression is not None and _unit(node.args.get("unit")):
            return shifted(node.this, node.expression, _unit(node.args["unit"]), sign)
        return None
    if called(node) in ("DATEADD", "TIMESTAMPADD", "ADDDATE", "SUBDATE", "ADD_MONTHS"):
        return _added_call(called(node), node.expressions)
    return None


def _added_call(name: str, args: list[exp.Expr]) -> exp.Expr | None:
    sign = -1 if name == "SUBDATE" else 1
    if len(args) == 3 and _unit(args[0]):
        return shifted(args[2], args[1], _unit(args[0]), sign)
    if len(args) == 2 and name == "ADD_MONTHS":
        return shifted(args[0], args[1], "MONTH", 1)
    step = _interval(args[1]) if len(args) == 2 else None
    return shifted(args[0], *step, sign) if step else None


def difference(node: exp.Expr, types: Types) -> exp.Expr | None:
    """DATEDIFF(unit, from, to), DATEDIFF(to, from), DATE_DIFF, TIMESTAMPDIFF."""
    if not isinstance(node, exp.DateDiff | exp.TimestampDiff | exp.DatetimeDiff):
        return None
    first, second, third = node.this, node.expression, node.args.get("unit")
    if _unit(first) and third is not None and second is not None:
        end = exp.column(third.name) if isinstance(third, exp.Var) else third
        days = spelling.fill(spelling.DAYS, a=end, b=second)
        return spelling.fill(spelling.SPANS[_unit(first)], x=days.unnest())
    if second is None or (third is not None and _unit(third) not in spelling.SPANS):
        return None
    days = spelling.fill(spelling.DAYS, a=first, b=second).unnest()
    return spelling.fill(spelling.SPANS[_unit(third) or "DAY"], x=days)


def span_of_days(node: exp.Expr, types: Types) -> exp.Expr | None:
    """A difference of dates beside an INTERVAL: the interval as a number of days."""
    if not isinstance(node, exp.Binary) or not _is_days(node.this):
        return None
    step = _interval(node.expression) if isinstance(node.expression, exp.Interval) else None
    if step is None or not step[0].name.lstrip("+-").isdigit():
        return None
    days = {"YEAR": 365.25, "MONTH": 30.4375, "WEEK": 7, "DAY": 1, "HOUR": 1 / 24}.get(step[1])
    if days is None:
        return None
    number = exp.Literal.number(f"{int(step[0].name) * days:g}")
    return type(node)(this=node.this.copy(), expression=number)


def formatted(node: exp.Expr, types: Types) -> exp.Expr | None:
    if isinstance(node, exp.ToChar):
        function, of, form = "TO_CHAR", node.this, node.args.get("format")
    elif called(node) in spelling.FORMATS and len(node.expressions) == 2:
        function, (of, form) = called(node), node.expressions
    else:
        return None
    text = spelling.date_format(function, form.name) if isinstance(form, exp.Literal) else None
    return exp.func("STRFTIME", exp.Literal.string(text), of.copy()) if text else None


def swapped_format(node: exp.Expr, types: Types) -> exp.Expr | None:
    """STRFTIME(x, '%Y'): SQLite wants the format first and gives NULL."""
    if not isinstance(node, exp.TimeToStr):
        return None
    form, of = node.args.get("format"), node.this.unnest()
    of = of.this if isinstance(of, exp.TsOrDsToTimestamp) else of
    if (
        isinstance(of, exp.Literal)
        and "%" in of.name
        and not (isinstance(form, exp.Literal) and "%" in form.name)
    ):
        return exp.func("STRFTIME", of.copy(), form.copy()) if form is not None else None
    return None


def text_against_number(node: exp.Expr, types: Types) -> exp.Expr | None:
    """STRFTIME gives text, which SQLite never finds equal to a number."""
    if not isinstance(node, exp.TimeToStr) or not isinstance(node.parent, exp.Predicate):
        return None
    siblings = [e for e in node.parent.iter_expressions() if not isinstance(e, exp.TimeToStr)]
    numbers = [e for e in siblings if isinstance(e, exp.Literal) and not e.is_string]
    form = node.args.get("format")
    single = isinstance(form, exp.Literal) and re.fullmatch(r"%[YmdHMSjWws]", form.name)
    if not single or not siblings or len(numbers) != len(siblings):
        return None
    return exp.cast(node.copy(), "INTEGER")


def cast_to_date(node: exp.Expr, types: Types) -> exp.Expr | None:
    """CAST(x AS DATE): SQLite would give the year's number."""
    if not isinstance(node, exp.Cast) or not node.is_type("date", "datetime", "timestamp"):
        return None
    return exp.Anonymous(
        this="DATE" if node.is_type("date") else "DATETIME", expressions=[node.this.copy()]
    )
