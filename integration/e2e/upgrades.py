"""A server and a client of WebSockets (RFC 6455) that only open them and pass bytes. They show whether a proxy does so.

python upgrades.py serve ADDRESS PORT
python upgrades.py ask ADDRESS PORT HOST BYTES      prints the status line, and how many bytes came back as sent
"""

from __future__ import annotations

import base64
import hashlib
import socket
import sys
import threading

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PATIENCE_S = 30


def serve(address: str, port: int) -> None:
    """Accepts upgrades and echoes every byte."""
    with socket.create_server((address, port)) as listener:
        print("ready", flush=True)
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_echo, args=(client,), daemon=True).start()


def _echo(client: socket.socket) -> None:
    with client:
        head, rest = _head(client)
        if b"upgrade: websocket" not in head.lower():
            client.sendall(b"HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n")
            return
        accept = base64.b64encode(hashlib.sha1((KEY + GUID).encode()).digest()).decode()
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
        answer = "\r\n".join([*lines, f"Sec-WebSocket-Accept: {accept}", "", ""])
        client.sendall(answer.encode() + rest)
        while some := client.recv(1 << 16):
            client.sendall(some)


def ask(address: str, port: int, host: str, count: int) -> None:
    """Opens a WebSocket and sends `count` bytes."""
    sent = bytes(number % 251 for number in range(count))
    with socket.create_connection((address, port), timeout=PATIENCE_S) as client:
        lines = ["GET /socket HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade"]
        request = "\r\n".join([*lines, "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {KEY}", "", ""])
        client.sendall(request.encode())
        head, came = _head(client)
        threading.Thread(target=client.sendall, args=(sent,), daemon=True).start()
        while len(came) < count and (some := client.recv(1 << 16)):
            came += some
    print(head.split(b"\r\n")[0].decode(), len(came) if came == sent else -1)


def _head(connection: socket.socket) -> tuple[bytes, bytes]:
    """Returns the head of a message, and the bytes that came behind it."""
    data = b""
    while b"\r\n\r\n" not in data and (some := connection.recv(1 << 16)):
        data += some
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        ask(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
