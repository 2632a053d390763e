"""From a warehouse's error to a status or a failure class (paper, III-C), and its one clean line.

Sources: cloud.google.com/bigquery/docs/error-messages (reasons), Snowflake's error numbers in
docs.snowflake.com, Spark's error conditions (spark.apache.org/docs/latest/sql-error-conditions).
"""

from __future__ import annotations

import re

from lynx_dspy.engines.failures import Table, one_line
from lynx_dspy.values import FailureClass, Outcome, Status

BIGQUERY: Table = (
    (r"^bytesBilledLimitExceeded:", Status.BLOCKED),
    (r"^(stopped|timeout):|job (execution was cancelled|timed out)", Status.TIMEOUT),
    (r"Access Denied: (Table|Dataset|Routine)|perhaps it does not exist", FailureClass.SCHEMA),
    (r"^notFound: (.*\b(Table|Dataset|Routine|Model)\b|$)", FailureClass.SCHEMA),
    (r"^(quota|rateLimit|concurrent)\w*Exceeded:|^(\w*[bB]ackend|\w*[iI]nternal)Error:", (
        Status.UNAVAILABLE
    )),
    (r"^(accessDenied|forbidden|notFound|auth\w*|billing\w*|required|5\d\d|network):", (
        Status.UNAVAILABLE
    )),
    (r"Unrecognized name|not found inside|ambiguous|does not exist in|has no field|"
     r"must be qualified with a dataset|Name \S+ not found", FailureClass.SCHEMA),
    (r"Syntax error|Unclosed|Illegal|Unexpected|Function not found|No matching signature|"
     r"Number of arguments|not supported|Duplicate column names", FailureClass.SYNTAX),
    (r"", FailureClass.SEMANTIC),
)  # fmt: skip
"""Patterns of `reason: message`; the first that matches holds."""

SNOWFLAKE: Table = (
    (r"^(000604|000630|000655):|reached its (statement|timeout)|SQL execution canceled",
     Status.TIMEOUT),
    (r"No active warehouse|resource monitor|exceeded its (credit )?quota|account is suspended",
     Status.UNAVAILABLE),
    (r"^(002003|002043|002211|003001|003041|003540):|does not exist or not authorized",
     FailureClass.SCHEMA),
    (r"^(000904|001104|002028|000937):|invalid identifier|ambiguous column", FailureClass.SCHEMA),
    (r"^(001003|001007|001018|001038|001044|000923|000938|002140|002141):|syntax error|"
     r"Unknown function|Invalid argument types|arguments for function|Unsupported feature",
     FailureClass.SYNTAX),
    (r"^(Operational|Interface|Internal)|^(25|39|27|26)\d{4}:|^(000603|000605|000606|000900):",
     Status.UNAVAILABLE),
    (r"", FailureClass.SEMANTIC),
)  # fmt: skip
"""Patterns of `number: message`, or of the class of error where it has no number."""

SPARK: Table = (
    (r"OPERATION_CANCELED|JOB_CANCELLED|cancelled (part of )?job group|Job \S+ cancelled|"
     r"INTERRUPTED|OPERATION_TIMEOUT", Status.TIMEOUT),
    (r"SparkContext (was|has been) (shut|stopped)|UNAVAILABLE|failed to connect|StatusCode|"
     r"Connection refused|UNAUTHENTICATED|PERMISSION_DENIED|INVALID_HANDLE|"
     r"SESSION_(CLOSED|NOT_FOUND)|Py4JNetworkError|Answer from Java side is empty|"
     r"OutOfMemoryError|No space left|FAILED_READ_FILE|ExecutorLost|stopped SparkContext",
     Status.UNAVAILABLE),
    (r"PARSE_SYNTAX_ERROR|PARSE_EMPTY|UNCLOSED_|INVALID_(SQL_SYNTAX|IDENTIFIER|TYPED_LITERAL)|"
     r"UNRESOLVED_ROUTINE|UNRESOLVABLE_TABLE_VALUED|WRONG_NUM_ARGS|_LITERAL_|"
     r"UNSUPPORTED_(DATATYPE|FEATURE)|ParseException", FailureClass.SYNTAX),
    (r"TABLE_OR_VIEW_NOT_FOUND|UNRESOLVED_(COLUMN|FIELD|MAP_KEY|USING)|FIELD_NOT_FOUND|"
     r"SCHEMA_NOT_FOUND|CATALOG_NOT_FOUND|AMBIGUOUS_|INCOMPATIBLE_COLUMN|REQUIRES_SINGLE_PART|"
     r"COLUMN_NOT_FOUND|UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY", FailureClass.SCHEMA),
    (r"", FailureClass.SEMANTIC),
)  # fmt: skip
"""Patterns of Spark's messages, which begin with a condition in brackets."""

_REASON = re.compile(r"^\w+: ")
_TRACE = re.compile(
    r"\s*(?:== SQL|JVM stacktrace|'(?:Project|Aggregate|Sort)\b.*;;?\n|;\n'?\w).*", re.S
)


def failed(table: Table, reason: str, message: str, seconds: float = 0.0) -> Outcome:
    """The outcome of a program whose run ended with `message`; `reason` is the server's code.

    >>> failed(SNOWFLAKE, "000904", "invalid identifier 'X'").failure_class.value
    'schema'
    """
    raw = f"{reason}: {message}"
    verdict = next(v for pattern, v in table if re.search(pattern, raw, re.I | re.S))
    line = one_line(_TRACE.sub("", message))
    if isinstance(verdict, FailureClass):
        return Outcome(Status.ERROR, error=line, failure_class=verdict, seconds=seconds)
    return Outcome(verdict, error=line, seconds=seconds)
