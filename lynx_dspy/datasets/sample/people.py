"""Who buys at Brindle & Bean: customers, and the accounts among them that are our own."""

from __future__ import annotations

from dataclasses import dataclass

from lynx_dspy.datasets.sample.clock import DAY, LAST_DAY, day, moment
from lynx_dspy.datasets.sample.dice import Dice

CUSTOMERS = 6_000
INTERNAL = 60

_FIRST_NAMES = (
    "Ada Amara Anton Bea Boris Carla Chidi Dalia Dmitri Elif Emil Farah Felix Greta Hana Hugo "
    "Ines Ivan Jamal Jun Kaya Kofi Lena Liam Mara Mateo Mei Milan Nadia Nils Olga Omar Paula "
    "Pia Quentin Rosa Ruben Saki Sofia Tariq Tess Uma Victor Wanda Yara Yusuf Zoe Zuri"
)
_LAST_NAMES = (
    "Abbott Adeyemi Alvarez Bauer Bellamy Bianchi Carver Chen Costa Dahl Delgado Dubois Ekström "
    "Farkas Fischer Garrido Gupta Haddad Hale Hoffman Ibrahim Ito Jansen Jovanovic Kaur Keller "
    "Kowalski Larsen Lindqvist Lopez Marsh Mbeki Moreau Nagy Nakamura Novak Okafor Olsen Patel "
    "Petrov Quinn Rahman Rossi Santos Schmidt Singh Sousa Tanaka Thorne Ueda Vasquez Vogel Walsh "
    "Weber Wolfe Yilmaz Young Zhang Zeman"
)
FIRST_NAMES = tuple(_FIRST_NAMES.split())
LAST_NAMES = tuple(_LAST_NAMES.split())

REGIONS: tuple[tuple[str | None, int], ...] = (
    ("North", 30),
    ("South", 24),
    ("East", 20),
    ("West", 17),
    ("Islands", 5),
    (None, 4),
)
GROUPS = (("household", 80), ("office", 14), ("cafe", 6))
SOURCES: tuple[tuple[str | None, int], ...] = (
    ("search", 30),
    ("referral", 22),
    ("social", 20),
    ("walk-in", 15),
    ("event", 7),
    (None, 6),
)
TIERS: tuple[tuple[str | None, int], ...] = ((None, 55), ("B", 25), ("S", 14), ("G", 6))
KINDS = (("TEST", 50), ("STAFF", 35), ("DEMO", 15))


@dataclass(frozen=True, slots=True)
class Customer:
    """What the other tables need to know of a customer; `joined` is a minute."""

    customer_id: int
    region: str | None
    group: str
    tier: str | None
    joined: int
    internal: bool


def customers(dice: Dice) -> tuple[list[Customer], list[tuple[object, ...]]]:
    """The customers in order of joining, with their rows; more join in each later year."""
    joined = sorted(_joining_minute(dice) for _ in range(CUSTOMERS))
    internal = set(range(40, CUSTOMERS, CUSTOMERS // INTERNAL))
    made = [
        Customer(
            customer_id,
            dice.weighted(REGIONS),
            dice.weighted(GROUPS),
            dice.weighted(TIERS),
            minute,
            customer_id in internal,
        )
        for customer_id, minute in enumerate(joined, 1)
    ]
    return made, [_row(customer, dice) for customer in made]


def internal_accounts(people: list[Customer], dice: Dice) -> list[tuple[object, ...]]:
    """The rows of `internal_accounts`: noticed and listed some days after they were made."""
    return [
        (
            person.customer_id,
            dice.weighted(KINDS),
            day(min(person.joined + dice.below(30) * DAY, LAST_DAY * DAY)),
        )
        for person in people
        if person.internal
    ]


def _joining_minute(dice: Dice) -> int:
    a_day = max(dice.below(LAST_DAY + 1), dice.below(LAST_DAY + 1) - LAST_DAY // 3)
    return a_day * DAY + dice.between(7 * 60, 22 * 60)


def _row(person: Customer, dice: Dice) -> tuple[object, ...]:
    first, last = dice.pick(FIRST_NAMES), dice.pick(LAST_NAMES)
    host = "brindle-bean.example" if person.internal else "mail.example"
    mailbox = f"{first}.{last}.{person.customer_id}".lower().replace("ö", "o")
    return (
        person.customer_id,
        f"{first} {last}",
        f"{mailbox}@{host}",
        person.region,
        person.group,
        dice.weighted(SOURCES),
        person.tier,
        None if dice.chance(35) else dice.between(1945, 2006),
        int(dice.chance(58)),
        moment(person.joined),
    )
