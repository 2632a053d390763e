"""What the closed loop brings a weak backbone that its profile spares it: an ablation with it on.

The embedded profile writes several candidates and repairs none. Here it writes one program and has
up to ten repairs, with the Critic's advice and nothing that ends a chain early, so that the length
of the history by round can be seen too.

    python -m bench.loop --data sql_eval --ids bench/ids/sql_eval_60.txt --out runs/loop
    lynx report runs/loop/full --figure history --out docs/history.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import lynx_dspy as lynx
from lynx_dspy.cli.ablate import write_study
from lynx_dspy.config import EMBEDDED
from lynx_dspy.optimize.ablate import ablation_study
from lynx_dspy.optimize.questions import from_dataset, read_ids

LOOPING = EMBEDDED.with_(
    stages=frozenset({"generator.formulate", "critic.diagnose", "reviser.repair"}),
    candidates=1,
    rescue_candidates=0,
    max_rounds=10,
    stagnation_rounds=10,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, help="folder of sql_eval")
    parser.add_argument("--ids", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lm", default=None)
    options = parser.parse_args()
    study = ablation_study(
        from_dataset("sql_eval", options.data, "train", ids=read_ids(options.ids)),
        lm=lynx.lm(options.lm),
        out=options.out,
        parts=("revision", "delta-memory", "static-check"),
        make=lambda: lynx.Lynx(config=LOOPING),
    )
    text, _ = write_study(options.out, [variant.folder for variant in study])
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
