"""The structure of the sample warehouse, as a data team would have left it.

Some columns are explained and some are not, and two references are not declared
(`internal_accounts.customer_id`, `support_tickets.order_id`): what the catalogue does not say,
the documents or the data do.
"""

from __future__ import annotations

DDL = """\
CREATE TABLE stores (
  store_id      INTEGER PRIMARY KEY,
  store_name    TEXT NOT NULL,
  city          TEXT NOT NULL,
  region        TEXT NOT NULL,  -- where the store stands, not where its customers live
  opened_on     TEXT NOT NULL,
  closed_on     TEXT,           -- NULL: still open
  floor_area_m2 INTEGER NOT NULL
);
CREATE TABLE categories (
  category_id   INTEGER PRIMARY KEY,
  category_name TEXT NOT NULL UNIQUE,
  department    TEXT NOT NULL   -- Coffee, Tea, Equipment or Accessories
);
CREATE TABLE products (
  product_id      INTEGER PRIMARY KEY,
  sku             TEXT NOT NULL UNIQUE,
  product_name    TEXT NOT NULL UNIQUE,
  category_id     INTEGER NOT NULL REFERENCES categories (category_id),
  list_price      REAL NOT NULL,  -- EUR, tax included, as of the snapshot
  unit_cost       REAL NOT NULL,
  launched_on     TEXT NOT NULL,
  discontinued_on TEXT            -- NULL: still sold
);
CREATE TABLE customers (
  customer_id      INTEGER PRIMARY KEY,
  full_name        TEXT NOT NULL,
  email            TEXT NOT NULL UNIQUE,
  region           TEXT,     -- home region of the customer; NULL: no address given
  "group"          TEXT NOT NULL,  -- household, office or cafe
  source           TEXT,     -- how the customer first heard of us
  loyalty_tier     TEXT,     -- NULL: not in the loyalty programme
  birth_year       INTEGER,
  marketing_opt_in INTEGER NOT NULL,  -- 1: may be mailed
  created_at       TEXT NOT NULL
);
CREATE TABLE internal_accounts (
  customer_id INTEGER PRIMARY KEY,
  kind        TEXT NOT NULL,  -- TEST, STAFF or DEMO
  added_on    TEXT NOT NULL
);
CREATE TABLE orders (
  order_id     INTEGER PRIMARY KEY,
  customer_id  INTEGER NOT NULL REFERENCES customers (customer_id),
  channel      TEXT NOT NULL,
  store_id     INTEGER REFERENCES stores (store_id),  -- NULL: not sold in a store
  status       INTEGER NOT NULL,
  placed_at    TEXT NOT NULL,
  paid_at      TEXT,
  shipped_at   TEXT,
  delivered_at TEXT,
  promo_code   TEXT,
  discount     REAL NOT NULL,  -- EUR off the goods of the whole order, stored as a positive number
  shipping_fee REAL NOT NULL
);
CREATE TABLE order_items (
  order_id   INTEGER NOT NULL REFERENCES orders (order_id),
  line_no    INTEGER NOT NULL,
  product_id INTEGER NOT NULL REFERENCES products (product_id),
  quantity   INTEGER NOT NULL,
  unit_price REAL NOT NULL,  -- EUR, the price on the day of the order
  PRIMARY KEY (order_id, line_no)
);
CREATE TABLE payments (
  payment_id  INTEGER PRIMARY KEY,
  order_id    INTEGER NOT NULL REFERENCES orders (order_id),
  method      TEXT NOT NULL,
  amount      INTEGER NOT NULL,
  captured_at TEXT NOT NULL
);
CREATE TABLE returns (
  return_id     INTEGER PRIMARY KEY,
  order_id      INTEGER NOT NULL,
  line_no       INTEGER NOT NULL,
  quantity      INTEGER NOT NULL,  -- pieces sent back, at most those of the order line
  reason        TEXT NOT NULL,
  returned_on   TEXT NOT NULL,
  refund_amount REAL,              -- EUR; NULL: not decided yet, 0: refused
  FOREIGN KEY (order_id, line_no) REFERENCES order_items (order_id, line_no)
);
CREATE TABLE plans (
  plan_code      TEXT PRIMARY KEY,
  price          REAL NOT NULL,     -- EUR for one billing period
  billing_months INTEGER NOT NULL,  -- length of a billing period
  bags_per_month INTEGER NOT NULL
);
CREATE TABLE subscriptions (
  subscription_id INTEGER PRIMARY KEY,
  customer_id     INTEGER NOT NULL REFERENCES customers (customer_id),
  plan_code       TEXT NOT NULL REFERENCES plans (plan_code),
  status          TEXT NOT NULL,
  started_on      TEXT NOT NULL,
  ended_on        TEXT
);
CREATE TABLE support_tickets (
  ticket_id    INTEGER PRIMARY KEY,
  customer_id  INTEGER NOT NULL REFERENCES customers (customer_id),
  order_id     INTEGER,
  topic        TEXT NOT NULL,
  priority     INTEGER NOT NULL,
  created_at   TEXT NOT NULL,
  closed_at    TEXT,     -- NULL: still open
  satisfaction INTEGER   -- 1 (worst) to 5 (best); NULL: the customer did not rate
);
CREATE VIEW order_totals AS
SELECT
  o.order_id,
  ROUND(SUM(i.quantity * i.unit_price), 2) AS goods_total,
  o.discount,
  o.shipping_fee,
  ROUND(SUM(i.quantity * i.unit_price) - o.discount + o.shipping_fee, 2) AS order_total
FROM orders AS o
JOIN order_items AS i ON i.order_id = o.order_id
GROUP BY o.order_id;
CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE INDEX orders_by_time ON orders (placed_at);
CREATE INDEX order_items_by_product ON order_items (product_id);
CREATE INDEX payments_by_order ON payments (order_id);
CREATE INDEX returns_by_line ON returns (order_id, line_no);
CREATE INDEX subscriptions_by_customer ON subscriptions (customer_id);
CREATE INDEX support_tickets_by_customer ON support_tickets (customer_id);
"""

TABLES = (
    "stores",
    "categories",
    "products",
    "customers",
    "internal_accounts",
    "orders",
    "order_items",
    "payments",
    "returns",
    "plans",
    "subscriptions",
    "support_tickets",
)
"""Every table, each after those that it refers to."""
