"""What goes on after the sale: coffee subscriptions and support tickets."""

from __future__ import annotations

from lynx_dspy.datasets.sample.clock import DAY, NOW, day, moment, moment_if_past
from lynx_dspy.datasets.sample.dice import Dice
from lynx_dspy.datasets.sample.people import Customer
from lynx_dspy.datasets.sample.trade import Order

ACTIVE, PAUSED, CANCELLED, LAPSED, SWITCHED = "A", "P", "C", "L", "X"

FIRST_PLANS = (("B1", 34), ("B3", 10), ("B12", 8), ("P1", 18), ("P3", 6), ("P12", 4), ("T1", 20))
PAID_PLANS = FIRST_PLANS[:-1]
TOPICS = (("delivery", 38), ("product", 24), ("billing", 18), ("subscription", 12), ("other", 8))
PRIORITIES = ((1, 12), (2, 63), (3, 25))
RATINGS: tuple[tuple[int | None, int], ...] = (
    (None, 55),
    (5, 17),
    (4, 13),
    (3, 7),
    (2, 4),
    (1, 4),
)


def subscriptions(people: list[Customer], dice: Dice) -> list[tuple[object, ...]]:
    """The rows of `subscriptions`: a switch of plan ends one and starts the next that day."""
    found: list[tuple[int, tuple[object, ...]]] = []
    for person in people:
        if not dice.chance(80 if person.internal else 30):
            continue
        started = person.joined // DAY * DAY + dice.below(200) * DAY
        plan = dice.weighted(FIRST_PLANS)
        while started <= NOW:
            status, ended = _end(plan, started, dice)
            over = day(ended) if ended <= NOW else None
            if over is None:
                status = PAUSED if dice.chance(5) else ACTIVE
            found.append((started, (person.customer_id, plan, status, day(started), over)))
            if status != SWITCHED:
                break
            plan = dice.weighted(tuple(one for one in PAID_PLANS if one[0] != plan))
            started = ended
    found.sort(key=lambda one: (one[0], one[1][0]))
    return [(number, *row) for number, (_, row) in enumerate(found, 1)]


def tickets(people: list[Customer], made: list[Order], dice: Dice) -> list[tuple[object, ...]]:
    """The rows of `support_tickets`: most about an order, some about none."""
    found: list[tuple[int, tuple[object, ...]]] = []
    for order in made:
        if dice.chance(13):
            at = order.placed + dice.below(20 * DAY)
            found.append((at, (order.customer.customer_id, order.order_id)))
    for person in people:
        if dice.chance(12):
            found.append((person.joined + dice.below(300 * DAY), (person.customer_id, None)))
    found.sort(key=lambda one: one[0])
    rows: list[tuple[object, ...]] = []
    for at, who in found:
        if at > NOW:
            break
        priority = dice.weighted(PRIORITIES)
        hours = dice.between(1, 30 if priority == 1 else 90)
        closed = moment_if_past(None if dice.chance(1.5) else at + hours * 60 + dice.between(1, 59))
        rating = None if closed is None else dice.weighted(RATINGS)
        topic = dice.weighted(TOPICS)
        rows.append((len(rows) + 1, *who, topic, priority, moment(at), closed, rating))
    return rows


def _end(plan: str, started: int, dice: Dice) -> tuple[str, int]:
    """How and when a subscription ends if nothing but time stops it."""
    if plan == "T1":
        return (SWITCHED if dice.chance(46) else CANCELLED), started + 30 * DAY
    at = started
    while True:
        at += 30 * DAY
        if dice.chance(3.4):
            return CANCELLED, at + dice.below(28) * DAY
        if dice.chance(0.9):
            return LAPSED, at + dice.below(28) * DAY
        if dice.chance(1.4):
            return SWITCHED, at + dice.below(28) * DAY
