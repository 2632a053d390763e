"""Each kernel layer by itself, in a process that gives nothing else up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lynx_dspy.engines.python import kernel

pytestmark = pytest.mark.skipif(not kernel.is_known(), reason="needs Linux on x86_64")

_PRELUDE = """
import ctypes, errno, json, os, resource, socket, subprocess, sys, threading
from pathlib import Path
from lynx_dspy.engines.python import kernel, landlock, seccomp

def tried(attempt):
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    except Exception as error:
        return type(error).__name__
    return "done"
"""


def told(code: str) -> dict[str, str]:
    """What a script prints as JSON, from a Python process of its own."""
    run = subprocess.run(
        [sys.executable, "-c", _PRELUDE + code], capture_output=True, text=True, check=False
    )
    assert run.stdout, run.stderr
    found: dict[str, str] = json.loads(run.stdout)
    if "missing" in found:
        pytest.skip(found["missing"])
    return found


def test_seccomp_alone_leaves_reading_and_threads(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    found = told(f"""
os.chdir({str(tmp_path)!r})
try:
    seccomp.restrict()
except kernel.NotOffered as reason:
    print(json.dumps({{"missing": str(reason)}})), os._exit(0)
libc = ctypes.CDLL(None, use_errno=True)
def raw(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
print(json.dumps({{
    "socket": tried(lambda: socket.socket()),
    "fork": tried(lambda: os.fork()),
    "vfork": tried(lambda: raw(58)),
    "exec": tried(lambda: os.execv("/bin/true", ["true"])),
    "kill": tried(lambda: os.kill(os.getppid(), 0)),
    "create": tried(lambda: os.open("new", os.O_WRONLY | os.O_CREAT)),
    "append": tried(lambda: os.open("there", os.O_WRONLY | os.O_APPEND)),
    "openat2": tried(lambda: raw(437, -100, b"there", 0, 0)),
    "unlink": tried(lambda: os.unlink("there")),
    "rename": tried(lambda: os.rename("there", "here")),
    "mkdir": tried(lambda: os.mkdir("folder")),
    "memfd": tried(lambda: os.memfd_create("m")),
    "ptrace": tried(lambda: raw(101, 0, 0, 0, 0)),
    "shared": tried(lambda: raw(29, 0, 4096, 0o600)),
    "uring": tried(lambda: raw(425, 1, 0)),
    "limits": tried(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))),
    "x32": tried(lambda: raw(0x40000000 + 41, 2, 1, 0)),
    "read": tried(lambda: Path("there").read_text()),
    "thread": tried(lambda: threading.Thread(target=len, args=("",)).start()),
    "look": tried(lambda: resource.getrlimit(resource.RLIMIT_NOFILE)),
}}))
""")
    allowed = {"read", "thread", "look"}
    assert {name for name, ended in found.items() if ended == "done"} == allowed
    assert found.pop("limits") == "ValueError"  # what Python makes of EPERM there
    assert {found[name] for name in found.keys() - allowed} == {"EPERM"}
    assert (tmp_path / "there").read_text() == "x"
    assert len(list(tmp_path.iterdir())) == 1


def test_landlock_alone_shows_one_folder_and_lets_nothing_be_written(tmp_path: Path) -> None:
    shown, hidden = tmp_path / "shown", tmp_path / "hidden"
    for folder in (shown, hidden):
        folder.mkdir()
        (folder / "file").write_text("x")
    (shown / "link").symlink_to(hidden / "file")
    found = told(f"""
shown, hidden = Path({str(shown)!r}), Path({str(hidden)!r})
try:
    landlock.restrict([shown])
except kernel.NotOffered as reason:
    print(json.dumps({{"missing": str(reason)}})), os._exit(0)
print(json.dumps({{
    "shown": tried(lambda: (shown / "file").read_text()),
    "hidden": tried(lambda: (hidden / "file").read_text()),
    "listed": tried(lambda: os.listdir(hidden)),
    "through a link": tried(lambda: (shown / "link").read_text()),
    "through dots": tried(lambda: (shown / ".." / "hidden" / "file").read_text()),
    "passwd": tried(lambda: Path("/etc/passwd").read_text()),
    "written": tried(lambda: (shown / "file").write_text("y")),
    "made": tried(lambda: (shown / "new").touch()),
    "removed": tried(lambda: (shown / "file").unlink()),
}}))
""")
    assert found.pop("shown") == "done"
    assert set(found.values()) == {"EACCES"}
    assert (shown / "file").read_text() == "x"


def test_the_network_namespace_alone_reaches_no_listener() -> None:
    found = told("""
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
before = tried(lambda: socket.create_connection(("127.0.0.1", port), 2))
try:
    kernel.leave_network()
except kernel.NotOffered as reason:
    print(json.dumps({"missing": str(reason)})), os._exit(0)
after = tried(lambda: socket.create_connection(("127.0.0.1", port), 2))
names = [name for _, name in socket.if_nameindex()]
print(json.dumps({"before": before, "after": after, "devices": ",".join(names)}))
""")
    assert found["before"] == "done"
    assert found["after"] == "ENETUNREACH"
    assert found["devices"] in ("lo", "")
