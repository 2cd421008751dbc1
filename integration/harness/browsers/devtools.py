"""The DevTools protocol over a pipe: the few calls and events that the bed needs, without a driver package.

A driver would bring its own browser flags and intercept requests. Both change the traffic on the network, which the bed
measures.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any

from harness.host.waiting import Timeout


class DevToolsError(RuntimeError):
    """The browser refused a call or ended."""


class DevTools:
    """One connection. Messages are JSON texts that end with a NUL byte."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._write_fd = write_fd
        self._next_id = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._closed = False
        self._reader = threading.Thread(target=self._read, args=(read_fd,), daemon=True)
        self._reader.start()

    def call(self, method: str, session: str | None = None, timeout_s: float = 30.0, **params: Any) -> dict[str, Any]:
        """Sends a call and returns its result."""
        with self._changed:
            self._next_id += 1
            identity = self._next_id
        message: dict[str, Any] = {"id": identity, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write_fd, data) :]
        with self._changed:
            if not self._changed.wait_for(lambda: identity in self._answers or self._closed, timeout_s):
                raise Timeout(f"the browser did not respond to {method} within {timeout_s:g} s")
            if identity not in self._answers:
                raise DevToolsError(f"the browser ended during {method}")
            answer = self._answers.pop(identity)
        if "error" in answer:
            raise DevToolsError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def events(self, session: str | None = None) -> list[dict[str, Any]]:
        """Returns all events so far in order, or those of one session."""
        with self._changed:
            return [event for event in self._events if session is None or event.get("sessionId") == session]

    def forget(self, session: str) -> None:
        """Drops the events of a session that ended. A browser that loads hundreds of pages has very many."""
        with self._changed:
            self._events = [event for event in self._events if event.get("sessionId") != session]

    def wait_until(self, done: Callable[[list[dict[str, Any]]], bool], timeout_s: float) -> bool:
        """Waits until `done` is true for all events so far; checks it at each message. Returns False after the
        timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: done(self._events) or self._closed, timeout_s) and not self._closed

    def _read(self, fd: int) -> None:
        buffer = bytearray()
        with os.fdopen(fd, "rb", buffering=0) as pipe:
            while part := pipe.read(1 << 20):
                buffer += part
                *whole, rest = bytes(buffer).split(b"\0")
                buffer = bytearray(rest)
                with self._changed:
                    for text in whole:
                        self._take(json.loads(text))
                    self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
        else:
            self._events.append(message)
