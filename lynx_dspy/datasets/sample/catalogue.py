"""What Brindle & Bean sells and where: stores, categories, products and subscription plans."""

from __future__ import annotations

from dataclasses import dataclass

from lynx_dspy.datasets.sample.clock import DAY, LAST_DAY, NOW, day, minute_of
from lynx_dspy.datasets.sample.dice import Dice

# store_name, city, region, opened_on, closed_on, floor_area_m2
STORES: tuple[tuple[str, str, str, str, str | None, int], ...] = (
    ("Old Roastery", "Aldmere", "North", "2014-03-01", None, 310),
    ("Aldmere Station", "Aldmere", "North", "2019-09-16", None, 85),
    ("Hexley Arcade", "Hexley", "North", "2021-05-03", "2024-01-31", 120),
    ("Larchwick Green", "Larchwick", "North", "2023-03-20", None, 140),
    ("Corran Market", "Corran", "South", "2016-06-11", None, 220),
    ("Corran Beach", "Corran", "South", "2022-05-01", "2023-10-15", 60),
    ("Dunmoor Square", "Dunmoor", "South", "2018-10-08", None, 175),
    ("Elsford Mill", "Elsford", "South", "2024-04-15", None, 260),
    ("Farrow Bay", "Farrow Bay", "East", "2017-02-13", None, 190),
    ("Glenholt Centre", "Glenholt", "East", "2020-11-02", None, 150),
    ("Ivenport Quay", "Ivenport", "East", "2023-09-04", None, 205),
    ("Marrowby Lane", "Marrowby", "West", "2015-08-24", None, 165),
    ("Brackwell Park", "Brackwell", "West", "2021-10-18", None, 130),
    ("Brackwell Airport", "Brackwell", "West", "2024-11-11", None, 45),
)

ORIGINS = ("Sidamo", "Huila", "Antigua", "Kirinyaga", "Cerrado", "Tarrazu", "Gayo", "Marcala")
BAGS = (("250 g", 100), ("1 kg", 360))
TINS = (("50 g", 100), ("200 g", 340))
BOXES = (("10 pack", 100), ("50 pack", 430))
ONE = (("", 100),)


@dataclass(frozen=True, slots=True)
class Range:
    """A category: every name in every size. Prices in cents, sizes as (suffix, percent)."""

    name: str
    department: str
    prefix: str
    popularity: int
    price: tuple[int, int]
    names: tuple[str, ...]
    sizes: tuple[tuple[str, int], ...]


RANGES = (
    Range("Whole Bean", "Coffee", "WB", 26, (790, 1150), ORIGINS, BAGS),
    Range("Ground Coffee", "Coffee", "GC", 18, (760, 1090), ORIGINS, BAGS),
    Range("Capsules", "Coffee", "CP", 14, (390, 520), ORIGINS[:6], BOXES),
    Range("Decaf", "Coffee", "DC", 6, (850, 1120), ORIGINS[:4], BAGS),
    Range(
        "Black Tea",
        "Tea",
        "BT",
        8,
        (480, 890),
        ("Assam", "Ceylon", "Darjeeling", "Earl Grey", "Keemun", "Lapsang"),
        TINS,
    ),
    Range(
        "Green Tea",
        "Tea",
        "GT",
        6,
        (520, 1190),
        ("Sencha", "Genmaicha", "Jasmine", "Longjing", "Gunpowder"),
        TINS,
    ),
    Range(
        "Herbal Tea",
        "Tea",
        "HT",
        6,
        (420, 690),
        ("Chamomile", "Peppermint", "Rooibos", "Lemongrass", "Hibiscus"),
        TINS,
    ),
    Range(
        "Espresso Machines",
        "Equipment",
        "EM",
        2,
        (24900, 89900),
        ("Piccolo", "Brio", "Forte", "Maestro", "Doppio", "Lungo Pro"),
        ONE,
    ),
    Range(
        "Grinders",
        "Equipment",
        "GR",
        3,
        (3900, 29900),
        ("Hand Mill", "Flat 54", "Flat 64", "Conic 40", "Conic 63", "Travel Mill"),
        ONE,
    ),
    Range(
        "Kettles",
        "Equipment",
        "KT",
        3,
        (3400, 14900),
        ("Gooseneck", "Stovetop", "Thermo", "Camp", "Studio", "Mini"),
        ONE,
    ),
    Range(
        "Mugs",
        "Accessories",
        "MG",
        5,
        (790, 2490),
        ("Stone", "Slate", "Birch", "Cobalt", "Latte Bowl", "Travel Cup", "Duo", "Enamel"),
        ONE,
    ),
    Range(
        "Filters",
        "Accessories",
        "FL",
        7,
        (290, 2790),
        ("Paper 01", "Paper 02", "Paper 04", "Cloth", "Steel", "Hemp"),
        ONE,
    ),
)

SINGULAR = {
    "Espresso Machines": "Espresso Machine",
    "Grinders": "Grinder",
    "Kettles": "Kettle",
    "Mugs": "Mug",
    "Filters": "Filter",
}

# plan_code, price, billing_months, bags_per_month
PLANS: tuple[tuple[str, float, int, int], ...] = (
    ("B1", 14.90, 1, 1),
    ("B3", 41.70, 3, 1),
    ("B12", 154.80, 12, 1),
    ("P1", 24.90, 1, 2),
    ("P3", 69.90, 3, 2),
    ("P12", 262.80, 12, 2),
    ("T1", 4.90, 1, 1),
)


@dataclass(frozen=True, slots=True)
class Store:
    """A store with the minutes between which it sells."""

    store_id: int
    region: str
    opens: int
    closes: int


@dataclass(frozen=True, slots=True)
class Product:
    """A product with its price in cents and the minutes between which it is sold."""

    product_id: int
    sku: str
    name: str
    category_id: int
    price: int
    cost: int
    launched: int
    discontinued: int | None

    def row(self) -> tuple[object, ...]:
        """The row of `products`."""
        return (
            self.product_id,
            self.sku,
            self.name,
            self.category_id,
            self.price / 100,
            self.cost / 100,
            day(self.launched),
            None if self.discontinued is None else day(self.discontinued),
        )


def stores() -> list[Store]:
    """Every store, in the order of `STORES`."""
    return [
        Store(n, region, minute_of(opened), NOW if closed is None else minute_of(closed))
        for n, (_, _, region, opened, closed, _) in enumerate(STORES, 1)
    ]


def products(dice: Dice) -> list[Product]:
    """Every category's names in every size; some launched late, some discontinued."""
    made: list[Product] = []
    for category_id, category in enumerate(RANGES, 1):
        for name in category.names:
            price = dice.between(*category.price) // 10 * 10 + 9
            cost_percent = dice.between(38, 62)
            launched = 0 if dice.chance(75) else dice.below(LAST_DAY - 200) * DAY
            for number, (size, percent) in enumerate(category.sizes):
                product_id = len(made) + 1
                size_price = price * percent // 1000 * 10 + 9
                gone = launched + dice.between(200, 900) * DAY if dice.chance(10) else NOW + 1
                made.append(
                    Product(
                        product_id,
                        f"{category.prefix}-{product_id:03}-{number}",
                        f"{name} {SINGULAR.get(category.name, category.name)} {size}".strip(),
                        category_id,
                        size_price,
                        size_price * cost_percent // 100,
                        launched,
                        gone if gone <= NOW else None,
                    )
                )
    return made
