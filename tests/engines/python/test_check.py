"""The static check of Python programs: what it finds, what it mends, what it leaves alone."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.engines.python.check import check
from lynx_dspy.engines.python.guard import breaches, refusal
from lynx_dspy.engines.python.mend import mend
from lynx_dspy.values import Column, FailureClass, Schema, Status, Table


def table(name: str, *columns: str) -> Table:
    return Table(name, tuple(Column(column, "VARCHAR") for column in columns))


SHOP = Schema(
    "pandas",
    (
        table("orders", "order_id", "customer_id", "total", "placed_on", "close"),
        table("customers", "customer_id", "name", "city"),
        table("order items", "order_id", "price"),
    ),
)


def said(code: str) -> list[tuple[str, tuple[str, ...]]]:
    """Name and candidates of what is found."""
    return [(found.name, found.candidates) for found in check(code, SHOP)]


def test_a_finding_has_class_place_and_candidates() -> None:
    (found,) = check("x = 1\nresult = orders['clsoe']", SHOP)
    assert found.failure_class is FailureClass.SCHEMA
    assert (found.name, found.candidates) == ("clsoe", ("close",))
    assert (found.line, found.column) == (2, 17)
    assert "order_id" in found.message


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("result = orders.totl.sum()", "totl"),
        ("result = orders[['total', 'clos']]", "clos"),
        ("result = orders.groupby('custmer_id').size()", "custmer_id"),
        ("result = orders.groupby(['order_id', 'citty'])['total'].sum()", "citty"),
        ("result = orders.groupby('order_id')['totals'].sum()", "totals"),
        ("result = orders.groupby('order_id').agg(t=('totals', 'sum'))", "totals"),
        ("result = orders.groupby('order_id').agg({'totals': 'sum'})", "totals"),
        ("result = orders.sort_values('totals')", "totals"),
        ("result = orders.nlargest(3, 'totals')", "totals"),
        ("result = orders.loc[orders.total > 1, 'totals']", "totals"),
        ("result = orders.drop(columns=['totals'])", "totals"),
        ("result = orders.dropna(subset=['totals'])", "totals"),
        ("result = orders.pivot_table(index='citty', values='total')", "citty"),
        ("result = orders.merge(customers, on='custmer_id')", "custmer_id"),
        ("m = orders.merge(customers, on='customer_id')\nresult = m['citty']", "citty"),
        ("m = orders.rename(columns={'total': 'sales'})\nresult = m['total']", "total"),
        ("m = orders[orders.total > 1].copy()\nresult = m['nam']", "nam"),
        ("result = tables['order items']['pric']", "pric"),
        ("result = [orders['citty'] for _ in range(3)]", "citty"),
        ("import pandas as pd\nresult = pd.merge(orders, customers)['citty']", "citty"),
        ("m = orders.merge(customers, left_on='order_id', right_on='name')\n"
         "result = m['customer_id']", "customer_id"),
    ],
)  # fmt: skip
def test_a_column_that_is_not_there_is_found(code: str, name: str) -> None:
    assert [found.name for found in check(code, SHOP)] == [name]


@pytest.mark.parametrize(
    "code",
    [
        "result = orders.total.sum()",
        "result = orders.groupby('customer_id')['total'].sum().reset_index()",
        "m = orders.copy()\nm['new'] = 1\nresult = m['new']",
        "m = orders\norders['new'] = 1\nresult = m['new']",
        "result = orders.assign(new=lambda f: f['total'] * 2)['new']",
        "result = orders.reset_index()['index']",
        "g = orders.groupby('customer_id').agg(n=('order_id', 'count')).reset_index()\n"
        "result = g[g['n'] > 1]",
        "m = orders.merge(customers, left_on='order_id', right_on='name', suffixes=('', '_c'))\n"
        "result = m[['customer_id', 'customer_id_c']]",
        "m = orders.merge(customers, left_on='order_id', right_on='name')\n"
        "result = m[['customer_id_x', 'customer_id_y']]",
        "def f(d):\n    d['new'] = 1\n    return d['anything']\nf(orders)\nresult = orders['new']",
        "for part in (orders, customers):\n    part['x'] = 1\nresult = 1",
        "if len(orders):\n    m = orders.groupby('order_id').sum()\nelse:\n    m = orders\n"
        "result = m['anything']",
        "column = 'total'\nresult = orders[column].str.upper()",
        "mask = orders['total'] > 1\nresult = orders[mask].total",
        "result = orders.pivot(index='order_id', columns='close', values='total')['A']",
        "orders.rename(columns={'total': 'sales'}, inplace=True)\nresult = orders['sales']",
        "orders.columns = ['a', 'b', 'c', 'd', 'e']\nresult = orders['a']",
        "orders.loc[:, 'new'] = 1\nresult = orders['new']",
        "result = orders.apply(lambda row: row['total'] if row.close else None, axis=1)",
        "result = orders['placed_on'].dt.year.value_counts()",
        "import math\nresult = {c.name: math.pi for c in customers.itertuples()}",
        "result = sql('SELECT count(*) FROM orders')",
        "try:\n    a = 1\nexcept ValueError as error:\n    a = error\nresult = a",
        "result = [n for n, in ((1,), (2,))]\nwith_ = (lambda a, *b, c=1, **d: (a, b, c, d))(1)",
        "if __name__ == '__main__':\n    result = 1",
    ],
)
def test_nothing_is_said_of_a_program_that_may_be_right(code: str) -> None:
    assert check(code, SHOP) == ()


@pytest.mark.parametrize(
    ("code", "mended"),
    [
        ("result = orders['clsoe']", "result = orders['close']"),
        ("result = orders.totl.sum()", "result = orders.total.sum()"),
        ("result = order.total", "result = orders.total"),
        ("result = np.log(orders.total)", "import numpy as np\nresult = np.log(orders.total)"),
        ("```python\nresult = orders\n```", "result = orders"),
        ("Here it is:\n```\nresult = orders\n```\nDone.", "result = orders"),
        ("orders.total.sum()", "result = orders.total.sum()"),
        ("print(orders.total.sum())", "result = orders.total.sum()"),
        ("answer = orders.total.sum()", "answer = orders.total.sum()\nresult = answer"),
        (
            "import pandas as pd\ndf = pd.read_csv('d/orders.csv', sep=',')\nresult = df['totl']",
            "import pandas as pd\ndf = orders\nresult = df['total']",
        ),
        (
            "import pandas as pd\nd = pd.read_csv('order items.csv')\nresult = d.price",
            "import pandas as pd\nd = tables['order items']\nresult = d.price",
        ),
        ("é = 'ü'; result = orders['clsoe']", "é = 'ü'; result = orders['close']"),
    ],
)
def test_what_has_one_outcome_is_mended(code: str, mended: str) -> None:
    made = mend(code, SHOP)
    assert made.code == mended
    assert made.changes
    assert check(made.code, SHOP) == ()


@pytest.mark.parametrize(
    "code", ["result = orders['zzz']", "result = foo", "import os\nresult = 1", "result = (", "1 +"]
)
def test_what_has_no_sure_outcome_is_left_alone(code: str) -> None:
    assert mend(code, SHOP).code == code
    assert check(code, SHOP)


def test_df_means_the_only_table() -> None:
    alone = Schema("pandas", SHOP.tables[:1])
    assert mend("result = df.total.sum()", alone).code == "result = orders.total.sum()"
    assert mend("result = df.total.sum()", SHOP).changes == ()


@pytest.mark.parametrize(
    "code",
    [
        "import os", "from os import path", "import pandas.io.common", "from pandas import io",
        "from math import *", "from . import x", "eval('1')", "exec('1')", "open('x')",
        "__import__('os')", "compile('1', '', 'eval')", "globals()", "getattr(orders, name)",
        "getattr(orders, '__class__')", "().__class__", "orders._mgr", "x.gi_frame",
        "orders.to_csv('x')", "orders.to_parquet('x')", "np.save('x', 1)", "pd.read_csv('x')",
        "pd.read_html('http://x')", "np.fromfile('x')", "pd.io.common.os", "pd.core",
        "orders.query('@pd.io.common')", "orders.query(text)", "orders.eval('a.__class__')",
        "__builtins__", "setattr(orders, 'a', 1)", "input()", "f = breakpoint",
    ],
)  # fmt: skip
def test_the_guard_refuses(code: str) -> None:
    refused = refusal(code)
    assert refused is not None
    assert refused.status is Status.BLOCKED
    assert "\n" not in refused.error


@pytest.mark.parametrize(
    "code",
    [
        "import pandas as pd\nresult = pd.DataFrame({'a': [1]}).to_dict('records')",
        "from datetime import datetime, timedelta\nresult = datetime(2024, 1, 1)",
        "import numpy as np\nfrom numpy.linalg import norm\nresult = norm([3, 4])",
        "from pandas.tseries.offsets import MonthEnd\nresult = 1",
        "result = orders.query('total > @limit and city == \"Oslo\"')",
        "result = getattr(orders, 'total', None)",
        "from collections import namedtuple\nP = namedtuple('P', 'a')\nresult = P(1)._asdict()",
        "class Box:\n    def __init__(self):\n        self.a = 1\nresult = Box().a",
        "from lynx_dspy.finance import rank\nresult = rank(orders)",
    ],
)
def test_the_guard_lets_honest_programs_pass(code: str) -> None:
    assert refusal(code) is None


def test_no_program_and_a_broken_one_are_told_apart() -> None:
    none, broken, long = refusal(" \n"), refusal("x = ("), refusal("#" * 50_000)
    assert none is not None and none.status is Status.NO_PROGRAM
    assert broken is not None and broken.failure_class is FailureClass.SYNTAX
    assert long is not None and long.status is Status.BLOCKED


_WORDS = (
    "orders customers result = [ ] ( ) 'total' 'clsoe' .groupby .merge , : lambda for in if pd np "
    "x y .loc .agg { } on= import def return ```python ``` é @ ** *"
)
_PIECES = st.sampled_from([*_WORDS.split(), "\n", "\n    "])


@given(st.lists(_PIECES, max_size=25).map(" ".join))
def test_check_and_mend_never_raise_and_a_mend_is_no_worse(code: str) -> None:
    before = check(code, SHOP)
    made = mend(code, SHOP)
    assert made.changes or made.code == code
    if made.changes and not any("Error" in found.message for found in before):
        assert len(check(made.code, SHOP)) <= len(before) + 1


@given(st.text(max_size=80))
def test_any_text_is_an_answer_of_the_guard(code: str) -> None:
    refusal(code)
    check(code, SHOP)


def test_breaches_have_a_place() -> None:
    (breach,) = breaches(ast.parse("x = 1\nimport os"))
    assert (breach.line, breach.column, breach.name) == (2, 1, "os")
