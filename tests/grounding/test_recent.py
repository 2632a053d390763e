from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from lynx_dspy.grounding.recent import Recent


def test_a_value_is_built_once_by_many_threads() -> None:
    built: list[int] = []
    recent = Recent[int]()

    def build() -> int:
        built.append(1)
        return 7

    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda _: recent.get("key", build), range(50)))
    assert values == [7] * 50
    assert built == [1]


def test_the_value_not_asked_for_longest_goes_first() -> None:
    recent = Recent[str](size=2)
    for key in ("a", "b", "a", "c"):
        recent.get(key, lambda key=key: key)
    assert recent.get("a", lambda: "anew") == "a"
    assert recent.get("b", lambda: "anew") == "anew"
