"""How far `tokens.estimate` is from the embedded model's own tokenizer, over real prompts' parts.

    python -m bench.tokens DATABASE...

Prints, for the schema text of each database, the estimate, the true count and their ratio.
"""

from __future__ import annotations

import sys

import lynx_dspy as lynx
from lynx_dspy.grounding.render import render
from lynx_dspy.grounding.schema import abstract
from lynx_dspy.tokens import estimate


def main() -> int:
    engine = lynx.lm("local").engine
    print("| database | estimated | true | estimated / true |\n|---|---:|---:|---:|")
    for path in sys.argv[1:]:
        with lynx.connect(path) as database:
            text = render(abstract(database), 1_500).text
        guessed, true = estimate(text), engine.count_tokens(text)
        print(f"| {database.name} | {guessed} | {true} | {guessed / true:.2f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
