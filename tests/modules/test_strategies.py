from __future__ import annotations

from lynx_dspy.modules.strategies import next_strategy
from lynx_dspy.values import (
    Attempt,
    Column,
    FailureClass,
    ForeignKey,
    Outcome,
    Schema,
    Status,
    Table,
)


def table(name: str, *columns: str) -> Table:
    return Table(name, tuple(Column(c, "INTEGER") for c in columns))


SCHEMA = Schema(
    "sqlite",
    (
        table("orders", "id", "buyer_id", "shop_id"),
        table("buyer", "id", "city_id"),
        table("shop", "id", "city_id"),
        table("city", "id", "label"),
    ),
    (
        ForeignKey("ORDERS", ("buyer_id",), "buyer", ("id",)),
        ForeignKey("orders", ("shop_id",), "shop", ("id",)),
        ForeignKey("buyer", ("city_id",), "city", ("id",)),
        ForeignKey("shop", ("city_id",), "city", ("id",)),
    ),
)


def attempt(code: str, error: str, failure: FailureClass = FailureClass.SCHEMA) -> Attempt:
    return Attempt(0, code, Outcome(Status.ERROR, error=error), failure_class=failure)


def test_a_missing_column_sends_to_the_table_that_holds_it() -> None:
    strategy = next_strategy([attempt("SELECT label FROM orders", "no such column: label")], SCHEMA)
    assert strategy.name == "other-table"
    assert "city" in strategy.order


def test_a_table_that_was_tried_is_not_named_again() -> None:
    tried = [
        attempt("SELECT label FROM city JOIN orders", "no such column: label"),
        attempt("SELECT label FROM orders", "no such column: label"),
    ]
    assert next_strategy(tried, SCHEMA).name != "other-table"


def test_another_join_path_is_spelled_out() -> None:
    code = "SELECT COUNT(*) FROM orders JOIN city ON orders.shop_id = city.id"
    wrong = attempt(code, "m", FailureClass.SEMANTIC)
    strategy = next_strategy([wrong], SCHEMA)
    assert strategy.name == "other-join-path"
    assert "orders.buyer_id = buyer.id AND buyer.city_id = city.id" in strategy.order


def test_an_empty_result_drops_a_condition_first() -> None:
    code = "SELECT id FROM orders WHERE id > 1 AND shop_id = 7"
    empty = Attempt(0, code, Outcome(Status.EMPTY, ("id",)), failure_class=FailureClass.SEMANTIC)
    strategy = next_strategy([empty], SCHEMA)
    assert (strategy.name, strategy.order[-11:]) == ("drop-clause", "shop_id = 7")


def test_steps_are_asked_for_once() -> None:
    code = "SELECT COUNT(*) FROM orders JOIN buyer ON 1 = 1"
    broken = attempt(code, "nothing", FailureClass.SYNTAX)
    assert next_strategy([broken], SCHEMA).name == "decompose"
    assert next_strategy([broken], SCHEMA, ("decompose",)).name != "decompose"
    stepwise = attempt(f"WITH x AS ({code}) SELECT * FROM x", "nothing", FailureClass.SYNTAX)
    assert next_strategy([stepwise], SCHEMA).name != "decompose"


def test_where_all_is_tried_or_nothing_can_be_read_one_starts_over() -> None:
    assert next_strategy([attempt("rubbish ((", "x")], Schema("sqlite", ())).name in (
        "decompose",
        "start-over",
    )
    every = ("other-table", "other-join-path", "decompose", "drop-clause")
    assert next_strategy([attempt("SELECT 1", "x")], SCHEMA, every).name == "start-over"
