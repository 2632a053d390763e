"""What was bought: orders, their lines, the payments for them and the goods sent back."""

from __future__ import annotations

from dataclasses import dataclass, field

from lynx_dspy.datasets.sample.catalogue import RANGES, Product, Store
from lynx_dspy.datasets.sample.clock import DAY, LAST_DAY, NOW, day, moment, moment_if_past
from lynx_dspy.datasets.sample.dice import Dice
from lynx_dspy.datasets.sample.people import Customer

PLACED, PAID, SHIPPED, DELIVERED, CANCELLED = 10, 20, 30, 40, 90

CHANNELS = (("W", 50), ("S", 27), ("M", 15), ("P", 8))
CHANNELS_WITHOUT_STORE = (("W", 66), ("M", 23), ("P", 11))
METHODS = {
    "W": (("CC", 50), ("WA", 34), ("BT", 10), ("GC", 6)),
    "S": (("CC", 58), ("CA", 32), ("GC", 10)),
    "M": (("WA", 62), ("CC", 38)),
    "P": (("BT", 60), ("CC", 40)),
}
ORDERS_PER_CUSTOMER = ((0, 20), (1, 28), (2, 18), (3, 12), (5, 12), (8, 7), (14, 3))
ORDERS_PER_INTERNAL = ((6, 50), (12, 50))
PRICE_PERCENT = {"2022": 91, "2023": 95, "2024": 100, "2025": 100}
MONTH_PERCENT = (70, 62, 66, 62, 60, 52, 48, 50, 64, 74, 100, 98)
REASONS = (("NL", 30), ("DM", 22), ("CM", 18), ("QF", 14), ("WI", 10), ("LT", 6))
UNPAID_DAYS = 14
SHORTEST_HABIT = 25 * DAY
RETURN_WINDOW = 30 * DAY


@dataclass(slots=True)
class Order:
    """An order on its way; moments are minutes, possibly after the snapshot, money is in cents."""

    customer: Customer
    placed: int
    channel: str
    store_id: int | None
    paid: int | None = None
    shipped: int | None = None
    delivered: int | None = None
    cancelled: int | None = None
    promo_code: str | None = None
    promo_percent: int = 0
    lines: list[tuple[Product, int, int]] = field(default_factory=list)
    order_id: int = 0

    @property
    def goods(self) -> int:
        return sum(quantity * price for _, quantity, price in self.lines)

    @property
    def discount(self) -> int:
        return self.goods * self.promo_percent // 100

    @property
    def shipping(self) -> int:
        free = self.channel == "S" or self.goods - self.discount >= 4_000
        return 0 if free else 490

    @property
    def total(self) -> int:
        return self.goods - self.discount + self.shipping

    @property
    def status(self) -> int:
        if self.cancelled is not None and self.cancelled <= NOW:
            return CANCELLED
        reached = ((self.delivered, DELIVERED), (self.shipped, SHIPPED), (self.paid, PAID))
        return next((code for at, code in reached if at is not None and at <= NOW), PLACED)

    def row(self) -> tuple[object, ...]:
        """The row of `orders`."""
        return (
            self.order_id,
            self.customer.customer_id,
            self.channel,
            self.store_id,
            self.status,
            moment(self.placed),
            moment_if_past(self.paid),
            moment_if_past(self.shipped),
            moment_if_past(self.delivered),
            self.promo_code,
            self.discount / 100,
            self.shipping / 100,
        )


def orders(
    people: list[Customer], stores: list[Store], products: list[Product], dice: Dice
) -> list[Order]:
    """Every order with its lines, numbered in the order of placing."""
    shelf = [
        (product, max(1, 120 * category.popularity // _pieces(products, n)))
        for n, category in enumerate(RANGES, 1)
        for product in products
        if product.category_id == n
    ]
    made: list[Order] = []
    for person in people:
        often = ORDERS_PER_INTERNAL if person.internal else ORDERS_PER_CUSTOMER
        wanted = dice.weighted(often) * (2 if person.group == "cafe" else 1)
        possible = 1 + (NOW - person.joined) // SHORTEST_HABIT
        for number in range(min(wanted, possible)):
            order = _placed(person, number == 0, stores, dice)
            _choose_goods(order, shelf, dice)
            _choose_promo(order, number == 0, dice)
            _follow(order, dice)
            made.append(order)
    made.sort(key=lambda order: (order.placed, order.customer.customer_id))
    for order_id, order in enumerate(made, 1):
        order.order_id = order_id
    return made


def items(made: list[Order]) -> list[tuple[object, ...]]:
    """The rows of `order_items`."""
    return [
        (order.order_id, line_no, product.product_id, quantity, price / 100)
        for order in made
        for line_no, (product, quantity, price) in enumerate(order.lines, 1)
    ]


def payments(made: list[Order], dice: Dice) -> list[tuple[object, ...]]:
    """The rows of `payments`, in cents; an order cancelled after payment has a negative one."""
    found: list[tuple[int, str, int, int]] = []
    for order in made:
        if order.paid is None or order.paid > NOW:
            continue
        method = dice.weighted(METHODS[order.channel])
        voucher = min(order.total // 2, 500 * dice.between(2, 6)) if dice.chance(7) else 0
        if voucher and method != "GC":
            found.append((order.order_id, "GC", voucher, order.paid))
        else:
            voucher = 0
        found.append((order.order_id, method, order.total - voucher, order.paid))
        if order.status == CANCELLED and order.cancelled is not None:
            found.append((order.order_id, method, -order.total, order.cancelled))
    found.sort(key=lambda one: (one[3], one[0]))
    return [
        (payment_id, order_id, method, amount, moment(at))
        for payment_id, (order_id, method, amount, at) in enumerate(found, 1)
    ]


def returns(made: list[Order], dice: Dice) -> list[tuple[object, ...]]:
    """The rows of `returns`: late ones are often refused, recent ones still undecided."""
    found: list[tuple[int, tuple[object, ...]]] = []
    for order in made:
        if order.status != DELIVERED or order.delivered is None:
            continue
        for line_no, (product, quantity, price) in enumerate(order.lines, 1):
            costly = RANGES[product.category_id - 1].department == "Equipment"
            if not dice.chance(9 if costly else 4.5):
                continue
            at = order.delivered + dice.between(1, 44) * DAY
            pieces = dice.between(1, quantity)
            reason = dice.weighted(REASONS)
            refund: float | None = pieces * price * (100 - order.promo_percent) // 100 / 100
            if at - order.delivered > RETURN_WINDOW and dice.chance(60):
                refund = 0.0
            if at > NOW - 9 * DAY:
                refund = None
            if at <= NOW:
                found.append((at, (order.order_id, line_no, pieces, reason, day(at), refund)))
    found.sort(key=lambda one: one[0])
    return [(return_id, *row) for return_id, (_, row) in enumerate(found, 1)]


def _pieces(products: list[Product], category_id: int) -> int:
    return sum(product.category_id == category_id for product in products)


def _placed(person: Customer, first: bool, stores: list[Store], dice: Dice) -> Order:
    """An order of this customer at some minute: busier before the year's end."""
    joined = person.joined // DAY
    while True:
        a_day = joined if first and dice.chance(55) else dice.between(joined, LAST_DAY)
        month = int(day(a_day * DAY)[5:7])
        if dice.chance(MONTH_PERCENT[month - 1]) or a_day == joined:
            break
    placed = max(person.joined, a_day * DAY + dice.between(8 * 60, 20 * 60))
    near = [s for s in stores if s.opens <= placed < s.closes and s.region == person.region]
    channel = dice.weighted(CHANNELS if near else CHANNELS_WITHOUT_STORE)
    if channel != "S":
        return Order(person, placed, channel, None)
    away = [s for s in stores if s.opens <= placed < s.closes]
    return Order(person, placed, channel, dice.pick(away if dice.chance(12) else near).store_id)


def _choose_goods(order: Order, shelf: list[tuple[Product, int]], dice: Dice) -> None:
    """One to five different products that are on sale on that day, at that day's price."""
    wanted = dice.weighted(((1, 30), (2, 34), (3, 22), (4, 10), (5, 4)))
    percent = PRICE_PERCENT[day(order.placed)[:4]]
    taken: set[int] = set()
    while len(order.lines) < wanted:
        product = dice.weighted(shelf)
        gone = product.discontinued is not None and product.discontinued <= order.placed
        if product.product_id in taken or gone or product.launched > order.placed:
            continue
        taken.add(product.product_id)
        most = 1 if product.price > 20_000 else (6 if order.customer.group != "household" else 3)
        order.lines.append((product, dice.between(1, most), product.price * percent // 100))


def _choose_promo(order: Order, first: bool, dice: Dice) -> None:
    month = int(day(order.placed)[5:7])
    if first and dice.chance(35):
        order.promo_code, order.promo_percent = "WELCOME10", 10
    elif month == 11 and dice.chance(40):
        order.promo_code, order.promo_percent = "BLACKBEAN20", 20
    elif month in (3, 4, 5) and dice.chance(18):
        order.promo_code, order.promo_percent = "SPRING15", 15
    elif dice.chance(6):
        order.promo_code, order.promo_percent = "FRIENDS5", 5


def _follow(order: Order, dice: Dice) -> None:
    """Let the order be paid, sent and handed over, or cancelled."""
    if order.channel == "S":
        order.paid = order.delivered = order.placed
        return
    if dice.chance(3):
        order.cancelled = order.placed + UNPAID_DAYS * DAY
        return
    order.paid = order.placed + dice.between(1, 3 * DAY if dice.chance(12) else 20)
    if dice.chance(2):
        order.cancelled = order.paid + dice.between(30, 2 * DAY)
        return
    order.shipped = order.paid + dice.between(8 * 60, 3 * DAY)
    order.delivered = order.shipped + dice.between(DAY, 6 * DAY)
