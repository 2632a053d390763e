"""Comments in CREATE TABLE, in the places where people write them."""

from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.engines.ddl_comments import read_comments


def test_behind_above_and_between() -> None:
    found = read_comments(
        """CREATE TABLE "my t" ( -- all orders
            -- number from the
            -- shop
            id INTEGER PRIMARY KEY,
            price DECIMAL(10, 2) DEFAULT 0, -- in euro, with tax
            /* day */ "sold on" DATE /* local
                time */, [kind] TEXT DEFAULT '-- no comment',
            x INT CHECK (x > 0 /* positive */),
            PRIMARY KEY (id, kind) -- not a column
        ) -- the end"""
    )
    assert found.table == "all orders the end"
    assert found.columns == {
        "id": "number from the shop",
        "price": "in euro, with tax",
        "sold on": "day local time",
        "x": "positive",
    }


def test_rulers_say_nothing() -> None:
    assert read_comments("CREATE TABLE t (\n-- ======\na INT, -- ---\nb INT)").columns == {}


@given(st.text(alphabet="ab ,()\n-/*'\"`[]"))
def test_never_raises(text: str) -> None:
    assert read_comments(f"CREATE TABLE t ({text})") is not None
