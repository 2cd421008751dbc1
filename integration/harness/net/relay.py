"""A slow link on loopback: it passes connections on to one server, counts the bytes from it, and can be away."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

CHUNK = 16 << 10
Address = tuple[str, int]


class Relay:
    """A link to one server, and a context manager. All connections share its rate towards the clients."""

    def __init__(self, address: Address, server: Address, bits_per_s: int) -> None:
        """Clients connect to `address`."""
        self._server, self._bytes_per_s = server, bits_per_s / 8
        self._listener = socket.create_server(address, backlog=128)
        self._open: set[socket.socket] = set()
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._is_away = False
        self._crossed = 0

    @property
    def crossed(self) -> int:
        """The bytes that clients got so far."""
        with self._lock:
            return self._crossed

    @contextmanager
    def away(self) -> Iterator[None]:
        """Ends all connections, and refuses new ones for as long as the context lasts."""
        self._leave()
        try:
            yield
        finally:
            self._is_away = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._is_away = True
            ended, self._open = self._open, set()
        for one in ended:
            _end(one)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._join(self._listener.accept()[0])

    def _join(self, client: socket.socket) -> None:
        """Passes the bytes of a connection in both directions."""
        try:
            server = socket.create_connection(self._server, timeout=5)
        except OSError:
            _end(client)
            return
        server.settimeout(None)
        with self._lock:
            refused = self._is_away
            if not refused:
                self._open |= {client, server}
        if refused:
            _end(client)
            _end(server)
            return
        threading.Thread(target=self._pass, args=(client, server), daemon=True).start()
        threading.Thread(target=self._pass, args=(server, client), kwargs={"counts": True}, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, *, counts: bool = False) -> None:
        with suppress(OSError):
            while chunk := source.recv(CHUNK):
                if counts:
                    self._wait_for_turn(len(chunk))
                target.sendall(chunk)
                if counts:
                    with self._lock:
                        self._crossed += len(chunk)
        with self._lock:
            self._open -= {source, target}
        _end(source)
        _end(target)

    def _wait_for_turn(self, size: int) -> None:
        with self._turn:
            time.sleep(size / self._bytes_per_s)


def _end(one: socket.socket) -> None:
    """Ends a connection in both directions, also for a thread that reads it."""
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
