"""A real MLflow server on loopback, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STARTS_WITHIN = 240.0  # a busy machine takes a minute


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(command: list[str], port: int) -> subprocess.Popen[bytes]:
    """The server that the command starts, when it answers."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        start_new_session=True,
    )
    deadline = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
                return process
        except OSError:
            time.sleep(0.1)
    stop(process)
    raise TimeoutError("the server does not answer")


def stop(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, 15)
    process.wait(20)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a server that keeps everything in `folder`."""
    port = free_port()
    where = ["--backend-store-uri", f"sqlite:///{folder / 'server.db'}"]
    where += ["--artifacts-destination", str(folder / "files"), "--workers", "1"]
    on = ["--host", "127.0.0.1", "-p", str(port)]
    process = serve([sys.executable, "-m", "mlflow", "server", *where, *on], port)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        stop(process)
