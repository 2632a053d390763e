"""The clock, and what `collect` leaves out."""

import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.engines.limits import collect, deadline
from lynx_dspy.values import Limits


def test_the_clock_goes_on_until_it_is_heard() -> None:
    calls: list[float] = []
    with deadline(0.02, lambda: calls.append(time.monotonic())) as expired:
        time.sleep(0.2)
    assert expired.is_set()
    assert len(calls) > 2
    settled = len(calls)
    time.sleep(0.1)
    assert len(calls) == settled


def test_a_block_in_time_is_not_interrupted_and_leaves_no_thread() -> None:
    calls: list[None] = []
    before = threading.active_count()
    with deadline(5, lambda: calls.append(None)) as expired:
        pass
    assert (calls, expired.is_set(), threading.active_count()) == ([], False, before)


CELLS = st.one_of(st.none(), st.integers(), st.text(), st.binary(), st.lists(st.text()))


@given(st.lists(st.tuples(CELLS, CELLS)), st.integers(0, 5), st.integers(0, 5))
def test_rows_are_hashable_and_nothing_is_cut_silently(
    rows: list[tuple[object, object]], most: int, longest: int
) -> None:
    limits = Limits(max_rows=most, max_cell_chars=longest)
    kept, truncated = collect(rows, limits)
    assert isinstance(hash(kept), int)
    assert len(kept) == min(len(rows), most)
    plain = tuple(tuple(tuple(c) if isinstance(c, list) else c for c in row) for row in rows)
    assert truncated == (kept != plain)


def test_nested_values_are_clipped_too() -> None:
    rows = [([1, 2, 3], {"k": "long"}, [["deep"]])]
    kept, truncated = collect(rows, Limits(max_cell_chars=2))
    assert (kept, truncated) == ((((1, 2), (("k", "lo"),), (("de",),)),), True)
