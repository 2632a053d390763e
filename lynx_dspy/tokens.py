"""Token estimates where no tokenizer is at hand: budgets for schema, knowledge and history."""

from __future__ import annotations

import re

_PIECE = re.compile(r"[A-Za-z]+|\d|[^\sA-Za-z\d]+|\s+")


def estimate(text: str) -> int:
    """About how many tokens a BPE code model makes of `text`.

    Words count one token per 6 letters begun, digits one each, runs of signs one per 2 begun, a
    lone blank nothing. `bench/tokens.py` compares it with the embedded model's own tokenizer.

    >>> estimate("SELECT name FROM customer")
    5
    """
    total = 0
    for piece in _PIECE.findall(text):
        if piece[0].isspace():
            total += 0 if piece == " " else 1
        elif piece[0].isdigit():
            total += 1
        elif piece[0].isascii() and piece[0].isalpha():
            total += -(-len(piece) // 6)
        else:
            total += -(-len(piece) // 2)
    return total


def clip(text: str, budget: int, mark: str = " …") -> str:
    """The longest prefix of whole lines (else of characters) that fits in `budget` tokens.

    >>> clip("one two\\nthree four", 4)
    'one two …'
    """
    if estimate(text) <= budget:
        return text
    kept: list[str] = []
    spent = estimate(mark)
    for line in text.splitlines():
        spent += estimate(line) + 1
        if spent > budget:
            break
        kept.append(line)
    if kept:
        return "\n".join(kept) + mark
    return text[: budget * 3] + mark
