"""The choice of a server: least busy, left out when it failed, one trial after its rest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.lm.balance import FIRST_REST, LONGEST_REST, Balance


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_requests_go_to_the_least_busy() -> None:
    balance = Balance(3)
    first = [balance.taken("p") for _ in range(3)]
    assert sorted(first) == [0, 1, 2]
    balance.done(1)
    assert balance.taken("p") == 1


def test_idle_servers_keep_their_prompts() -> None:
    balance = Balance(4)
    homes = {}
    for _ in range(3):
        for prefix in map(str, range(40)):
            number = balance.taken(prefix)
            assert number is not None
            balance.done(number)
            assert homes.setdefault(prefix, number) == number
    assert set(homes.values()) == {0, 1, 2, 3}


def test_affinity_lets_a_prompts_home_be_busier() -> None:
    balance = Balance(2, affinity=2)
    home = balance.taken("p")
    assert [balance.taken("p"), balance.taken("p")] == [home, home]
    assert balance.taken("p") != home


def test_a_server_that_failed_rests_and_then_gets_one_trial() -> None:
    clock = Clock()
    balance = Balance(2, clock=clock)
    assert {balance.taken("a"), balance.taken("a")} == {0, 1}
    balance.failed(0)
    balance.done(1)
    assert [balance.taken(str(n)) for n in range(4)] == [1] * 4
    clock.now += FIRST_REST
    assert balance.taken("x") == 0 and balance.is_suspect(0)
    assert balance.taken("x") == 1, "a second request must not go to a server on trial"
    balance.done(0)
    assert not balance.is_suspect(0) and balance.taken("x") == 0


def test_rests_double_and_the_wait_is_known() -> None:
    clock = Clock()
    balance = Balance(1, clock=clock)
    for n in range(12):
        assert balance.taken() == 0
        balance.failed(0)
        assert balance.taken() is None
        assert balance.wait() == min(FIRST_REST * 2**n, LONGEST_REST)
        clock.now += balance.wait()


def test_one_fall_of_a_busy_server_counts_once() -> None:
    balance = Balance(1, clock=Clock())
    for _ in range(9):
        balance.taken()
    for _ in range(9):
        balance.failed(0)
    assert balance.wait() == FIRST_REST
    (standing,) = balance.standings()
    assert (standing.outstanding, standing.failures) == (0, 1)


@given(
    servers=st.integers(1, 5),
    steps=st.lists(st.tuples(st.sampled_from("tdfrc"), st.integers(0, 30)), max_size=80),
)
def test_what_is_under_way_is_always_known(servers: int, steps: list[tuple[str, int]]) -> None:
    clock = Clock()
    balance, under_way = Balance(servers, clock=clock), list[int]()
    for step, number in steps:
        if step == "t":
            taken = balance.taken(str(number))
            under_way += [taken] if taken is not None else []
        elif step == "c":
            clock.now += number
        elif under_way:
            server = under_way.pop(number % len(under_way))
            {"d": balance.done, "f": balance.failed, "r": balance.released}[step](server)
        counts = [one.outstanding for one in balance.standings()]
        assert counts == [under_way.count(n) for n in range(servers)]
    clock.now += LONGEST_REST
    assert under_way or balance.taken() is not None, "a rested server must be tried again"
