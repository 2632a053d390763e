"""What a hostile program can do in the sandbox: the guard is left out, the walls stand alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from lynx_dspy.engines.python.audit import MARK
from lynx_dspy.engines.python.sandbox import PRINTED_CHARS, Ran, Sandbox, SandboxFault
from lynx_dspy.values import Limits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls tested are Linux's")

OS = "import pandas as pd\nos = pd.io.common.os\nsys = os.sys\n"
"""How a program that was not checked gets at more than it was given."""

SHORT = Limits(timeout_seconds=2.0)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "t.parquet"
    parquet.write_table(pa.table({"a": [1, 2, None], "s": ["x", "y", None]}), path)
    return path


@pytest.fixture(scope="module")
def sandbox(table: Path) -> Iterator[Sandbox]:
    box = Sandbox({"t": table}, memory=400_000_000)
    yield box
    box.close()


def run(sandbox: Sandbox, code: str, limits: Limits | None = None) -> Ran:
    return sandbox.run(code, limits or Limits(timeout_seconds=20.0))


def rows(sandbox: Sandbox, code: str) -> object:
    ran = run(sandbox, code)
    assert ran.table is not None, (ran.report, ran.fault, ran.code)
    return ran.table.rows


def test_an_honest_program_gets_its_tables_and_gives_rows(sandbox: Sandbox) -> None:
    assert rows(sandbox, "result = t.groupby('s').a.sum()") == (("x", 1.0), ("y", 2.0))
    assert rows(sandbox, "result = len(tables['t'])") == ((3,),)
    assert rows(sandbox, "u = t.dropna()\nresult = sql('SELECT max(a) FROM u')") == ((2.0,),)


def test_every_layer_holds_where_these_tests_run(sandbox: Sandbox) -> None:
    layers = run(sandbox, "result = 1").report.layers
    assert layers["audit hook"] == layers["limits"] == "on"
    assert set(layers) == {
        "limits", "network namespace", "capabilities", "landlock", "seccomp", "audit hook",
    }  # fmt: skip


@pytest.mark.parametrize(
    "attempt",
    [
        "result = sys.modules['io'].open('/etc/passwd').read()",
        "result = pd.read_csv('/etc/passwd')",
        "result = os.listdir('/etc')",
        "result = os.listdir('..')",
        "pd.DataFrame({'a': [1]}).to_csv('/tmp/lynx-escape.csv')\nresult = 1",
        "pd.DataFrame({'a': [1]}).to_csv('here.csv')\nresult = 1",
        "os.open('here', os.O_WRONLY | os.O_CREAT)\nresult = 1",
        "os.remove('/tmp/lynx-escape.csv')\nresult = 1",
        "os.system('id')\nresult = 1",
        "os.fork()\nresult = 1",
        "os.execv('/bin/sh', ['sh'])\nresult = 1",
        "os.kill(os.getppid(), 9)\nresult = 1",
        "os.killpg(0, 15)\nresult = 1",
        "import socket",
        "import ctypes",
        "import os",
        "sys.modules['_socket'].socket() if '_socket' in sys.modules else os.fork()",
        "sys.modules['ctypes'].CDLL(None) if 'ctypes' in sys.modules else os.fork()",
        "sys.modules['subprocess'].run(['id']) if 'subprocess' in sys.modules else os.fork()",
        "sys.settrace(print)\nresult = 1",
        "every = ().__class__.__base__.__subclasses__()\n"
        "(found,) = [c for c in every if c.__name__ == '_wrap_close']\n"
        "found.__init__.__globals__['system']('id')\nresult = 1",
    ],
)
def test_what_is_not_allowed_is_refused(sandbox: Sandbox, attempt: str) -> None:
    ran = run(sandbox, OS + attempt)
    assert ran.table is None
    assert MARK in ran.report.error or ran.report.kind in ("PermissionError", "FileNotFoundError")
    assert not Path("/tmp/lynx-escape.csv").exists()


def test_code_in_c_cannot_open_files_either(sandbox: Sandbox) -> None:
    outside = OS + "pa = sys.modules['pyarrow']\nresult = pa.OSFile('/etc/passwd').read(5)"
    if run(sandbox, "result = 1").report.layers["landlock"] != "on":
        pytest.skip("no Landlock here")
    ran = run(sandbox, outside)
    assert ran.report.kind == "PermissionError"
    written = OS + "pa = sys.modules['pyarrow']\npa.OSFile('x', 'wb')\nresult = 1"
    assert run(sandbox, written).report.kind == "PermissionError"


def test_a_program_cannot_raise_its_own_limits(sandbox: Sandbox) -> None:
    code = OS + "sys.modules['resource'].setrlimit(9, (-1, -1))\nresult = 1"
    assert run(sandbox, code).table is None


def test_data_cannot_be_changed(sandbox: Sandbox, table: Path) -> None:
    before = table.read_bytes()
    assert run(sandbox, f"t.to_parquet({str(table)!r})\nresult = 1").table is None
    assert table.read_bytes() == before
    rows(sandbox, "t.loc[:, 'a'] = 0\nresult = 1")
    assert rows(sandbox, "result = t.a.max()") == ((2.0,),)


@pytest.mark.parametrize(
    "endless",
    [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import time\ntime.sleep(1000)",
        "sum(range(10**12))",
        OS
        + "result = [sys.modules['_thread'].start_new_thread(lambda: [0 for _ in iter(int, 1)], ())"
        "]\nwhile True: pass",
    ],
)
def test_an_endless_program_is_killed(sandbox: Sandbox, endless: str) -> None:
    ran = run(sandbox, endless, SHORT)
    assert ran.expired or ran.code < 0
    assert ran.seconds < 10


@pytest.mark.parametrize(
    "greedy",
    [
        "result = 'x' * 10**10",
        "kept = []\nwhile True: kept.append(bytes(10**7))",
        "import numpy as np\nresult = np.ones(10**10)",
        OS + "m = sys.modules['mmap'].mmap(-1, 10**10)\nresult = 1",
    ],
)
def test_a_memory_bomb_hits_its_own_limit(sandbox: Sandbox, greedy: str) -> None:
    ran = run(sandbox, greedy)
    assert ran.table is None
    assert not ran.expired


def test_a_deep_recursion_is_an_error(sandbox: Sandbox) -> None:
    assert run(sandbox, "def f(): return f()\nf()").report.kind == "RecursionError"


def test_what_is_printed_is_kept_to_its_cap(sandbox: Sandbox) -> None:
    ran = run(sandbox, "for _ in range(1000): print('y' * 100_000)\nresult = 1")
    assert ran.table is not None
    assert len(ran.report.printed) == PRINTED_CHARS
    assert run(sandbox, "print('hi')\nresult = 1").report.printed == "hi\n"


def test_a_huge_result_is_cut(sandbox: Sandbox) -> None:
    limits = Limits(timeout_seconds=20.0, max_rows=10, max_cell_chars=5)
    many = run(sandbox, "import pandas as pd\nresult = pd.Series(range(10**6))", limits)
    assert many.table is not None and many.table.truncated and len(many.table.rows) == 10
    long = run(sandbox, "result = 'z' * 10**7", limits)
    assert long.table is not None and long.table.rows == (("zzzzz",),) and long.table.truncated


def test_a_result_over_the_byte_limit_is_no_result(sandbox: Sandbox) -> None:
    limits = Limits(timeout_seconds=20.0, max_bytes=100_000)
    ran = run(sandbox, "import numpy as np\nresult = np.zeros((9_000, 50))", limits)
    assert ran.table is None


@pytest.mark.parametrize("ending", ["os._exit(0)", "os._exit(3)", "os.abort()"])
def test_a_process_that_ends_itself_has_no_result(sandbox: Sandbox, ending: str) -> None:
    ran = run(sandbox, OS + ending)
    assert ran.table is None and ran.fault


def test_a_report_that_the_program_wrote_itself_is_only_text(sandbox: Sandbox) -> None:
    """Descriptors of the two files are open in the process; nothing in them is trusted."""
    forged = (
        "for place in range(3, 64):\n    try:\n        os.write(place, b'junk')\n"
        "    except OSError:\n        pass\nos._exit(0)"
    )
    ran = run(sandbox, OS + forged)
    assert ran.table is None and ran.fault


def test_threads_left_behind_end_with_the_process(sandbox: Sandbox) -> None:
    code = OS + "sys.modules['_thread'].start_new_thread(lambda: [0 for _ in iter(int, 1)], ())\n"
    assert rows(sandbox, f"{code}result = 7") == ((7,),)
    (zygote,) = sandbox._idle
    process = zygote.process.pid
    assert Path(f"/proc/{process}/task/{process}/children").read_text() == ""


def test_the_process_that_forks_has_one_thread(sandbox: Sandbox) -> None:
    rows(sandbox, "result = 1")
    (zygote,) = sandbox._idle
    assert len(list(Path(f"/proc/{zygote.process.pid}/task").iterdir())) == 1


def test_nothing_of_one_program_reaches_the_next(sandbox: Sandbox) -> None:
    rows(sandbox, "import pandas as pd\npd.DataFrame.secret = 1\nt['b'] = 1\nresult = 1")
    code = "import pandas as pd\nresult = [hasattr(pd.DataFrame, 'secret'), 'b' in t.columns]"
    assert rows(sandbox, code) == ((False,), (False,))


def test_the_environment_is_empty(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "s3cret")
    assert "s3cret" not in str(rows(sandbox, OS + "result = str(dict(os.environ))"))


def test_the_temporary_folder_goes(sandbox: Sandbox) -> None:
    ((place,),) = rows(sandbox, OS + "result = os.getcwd()")  # type: ignore[misc, attr-defined]
    assert not Path(place).parent.exists()


def test_a_closed_sandbox_says_so(table: Path) -> None:
    box = Sandbox({"t": table})
    box.close()
    box.close()
    with pytest.raises(SandboxFault, match="connect again"):
        box.run("result = 1")


def test_a_sandbox_whose_process_died_starts_another(sandbox: Sandbox) -> None:
    rows(sandbox, "result = 1")
    os.kill(sandbox._idle[0].process.pid, 9)
    sandbox._idle[0].process.wait()
    assert rows(sandbox, "result = 2") == ((2,),)
