from lynx_dspy.engines.mend import Mend
from lynx_dspy.values import Schema


def mend(code: str, schema: Schema) -> Mend:
    return Mend(code)
