"""Envoy's admin interface of a `longhaul run`: a Unix socket in the private folder of its state folder."""

from __future__ import annotations

import http.client
import os
import socket
from pathlib import Path

TIMEOUT_S = 30.0


def admin_socket(state: Path) -> Path:
    """Returns the socket of the run with this state folder."""
    return state / "private" / "admin.sock"


def connect(path: Path) -> socket.socket:
    """Connects to a Unix socket. Its path may be longer than the address of a socket."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(TIMEOUT_S)
        try:
            connection.connect(f"/proc/self/fd/{folder}/{path.name}")
        except OSError:
            connection.close()
            raise
        return connection
    finally:
        os.close(folder)


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = connect(self._path)


def ask(path: Path, target: str, method: str = "GET") -> str:
    """Sends a request to the socket at `path`. Returns the body of the response.

    Raises:
        OSError: nobody responds, or the response is an error.
    """
    connection = _Connection(path)
    try:
        connection.request(method, target)
        response = connection.getresponse()
        body = response.read().decode()
    except http.client.HTTPException as error:
        raise OSError(f"{method} {target} at {path}: {error!r}") from error
    finally:
        connection.close()
    if response.status >= 400:
        raise OSError(f"{method} {target} at {path}: {response.status} {body}")
    return body
