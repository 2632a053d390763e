"""A whole question over a database that is only described: what is spent outside the model.

    python -m bench.described METADATA_DIR [--dense]

A scripted model answers each stage at once, first with a program that names a column which does not
exist, then with a repair. `--dense` aligns by embedding too, as the full pipeline does where an
embedder is at hand. Seconds are those of the processor: on a busy machine the clock tells more of
the others.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path

import dspy

import lynx_dspy as lynx
from bench.warehouse import megabytes, timed
from lynx_dspy.config import FULL
from lynx_dspy.grounding.embedding import default_embedder
from lynx_dspy.program import Lynx

MOST_FIRST = 10.0
MOST_WARM = 1.0
QUESTIONS = (
    "How many page views did each event have in January 2021?",
    "Which traffic source gave the most purchases on 2020/12/01?",
    "Average engagement time of mobile users by device category",
    "Top five items by revenue for users from São Paulo",
)


class Scripted:
    """Answers each stage from a table."""

    supported_params = frozenset({"response_format"})
    supports_response_schema = True

    def __init__(self, program: str, repaired: str) -> None:
        self.replies: dict[str, dict[str, object]] = {
            "generator.align": {"links": []},
            "generator.distill": {"semantic": "", "structural": ""},
            "generator.intent": {"intent": "count"},
            "generator.ground": {"grounding": "a table"},
            "generator.formulate": {"analysis": "", "code": program},
            "critic.reflect": {"summary": "a column is missing"},
            "critic.diagnose": {"suggestion": "use a column that exists"},
            "reviser.repair": {"analysis": "", "code": repaired},
        }

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        stage = dspy.settings.caller_modules[-1].stage_name
        return dspy.lm15.Response(
            id=None,
            model="scripted",
            message=dspy.lm15.Message.assistant(json.dumps(self.replies[stage])),
            finish_reason="stop",
            usage=dspy.lm15.Usage(input_tokens=1, output_tokens=1, total_tokens=2),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dense", action="store_true")
    options = parser.parse_args()
    database, connecting = timed(lambda: lynx.connect(f"metadata:{options.folder}"))
    if options.dense and (embedder := default_embedder()):
        _, embedding = timed(lambda: embedder.encode(["the weights are loaded"]))
        print(f"starting the embedder: {embedding:.2f}")
    table = database.introspect().tables[-1]
    name = ".".join(f"`{part}`" for part in table.parts)
    column = next(c.name for c in table.columns if "." not in c.name)
    wrong = f"SELECT {column}_, COUNT(*) AS n FROM {name} GROUP BY 1 ORDER BY zzz"
    right = f"SELECT {column}, COUNT(*) AS n FROM {name} GROUP BY 1 ORDER BY n"
    engine = Scripted(wrong, right)
    lm = dspy.LM("test/scripted", engine=engine, cache=False, num_retries=0)
    program = Lynx(config=FULL.with_(adapter="json", embedding_links=options.dense))
    times = []
    for question in QUESTIONS:
        clock = time.perf_counter()
        with dspy.context(lm=lm):
            answer, seconds = timed(partial(program.__call__, question=question, database=database))
        times.append(seconds)
        clock = time.perf_counter() - clock
        print(f"{seconds:.2f} ({clock:.2f} by the clock), {len(answer.attempts)} attempts")
    first, warm = connecting + times[0], max(times[1:])
    print(f"first question, with connecting: {first:.2f} (budget {MOST_FIRST:g})")
    print(f"slowest of the later: {warm:.2f} (budget {MOST_WARM:g}); {megabytes():.0f} MB at most")
    return 0 if first < MOST_FIRST and warm < MOST_WARM else 1


if __name__ == "__main__":
    raise SystemExit(main())
