from lynx_dspy.values import Finding, Schema


def check(code: str, schema: Schema) -> tuple[Finding, ...]:
    return ()
