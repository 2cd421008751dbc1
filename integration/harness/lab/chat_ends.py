"""A server of XMPP with STARTTLS, and a client of it by slixmpp, the library of many clients.

Each end runs in a process of its own, in its own namespace. The server needs the standard library alone:

    python chat_ends.py serve ADDRESS CERT KEY    port 5222; it returns every message to its sender
    python chat_ends.py ask JSON                  one session; prints how long it took, as JSON. Needs slixmpp
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import socket
import ssl
import sys
import threading
import time
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

PORT = 5222
DOMAIN = "chat.example.org"
TEXT = "0123456789abcdef" * 500
PATIENCE_S = 60
TLS = "urn:ietf:params:xml:ns:xmpp-tls"
SASL = "urn:ietf:params:xml:ns:xmpp-sasl"
BIND = "urn:ietf:params:xml:ns:xmpp-bind"
HEAD = (
    "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
    f"id='1' from='{DOMAIN}' version='1.0'>"
)


class Session:
    """A server's connection (RFC 6120): a stream in the clear, one in TLS, and one of a user."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self.sock = sock
        self.context = context
        self.features = f"<starttls xmlns='{TLS}'><required/></starttls>"

    def say(self, text: str) -> None:
        """Sends text."""
        self.sock.sendall(text.encode())

    def serve(self) -> None:
        """Streams until the client closes one. Each begins with a parser of its own."""
        while self.stream():
            pass

    def stream(self) -> bool:
        """One stream. Returns false if no other follows."""
        parser = ElementTree.XMLPullParser(["start", "end"])
        depth = 0
        while data := self.sock.recv(65536):
            parser.feed(data)
            events: Any = parser.read_events()
            for event, element in events:
                depth += 1 if event == "start" else -1
                if (event, depth) == ("start", 1):
                    self.say(f"{HEAD}<stream:features>{self.features}</stream:features>")
                elif (event, depth) == ("end", 1) and self.hear(element):
                    return True
                elif (event, depth) == ("end", 0):
                    self.say("</stream:stream>")
                    return False
        return False

    def hear(self, stanza: ElementTree.Element) -> bool:
        """Responds to an element. Returns true if a new stream follows."""
        kind = stanza.tag.rpartition("}")[2]
        if kind == "starttls":
            self.say(f"<proceed xmlns='{TLS}'/>")
            self.sock = self.context.wrap_socket(self.sock, server_side=True)
            self.features = f"<mechanisms xmlns='{SASL}'><mechanism>PLAIN</mechanism></mechanisms>"
        elif kind == "auth":
            self.say(f"<success xmlns='{SASL}'/>")
            self.features = f"<bind xmlns='{BIND}'/>"
        elif kind == "iq":
            bound = f"<bind xmlns='{BIND}'><jid>user@{DOMAIN}/desk</jid></bind>"
            inside = bound if stanza.find(f"{{{BIND}}}bind") is not None else ""
            self.say(f"<iq type='result' id='{escape(stanza.get('id', ''))}'>{inside}</iq>")
        elif kind == "message":
            body = escape(stanza.findtext("{jabber:client}body", ""))
            self.say(f"<message type='chat' from='echo@{DOMAIN}' to='user@{DOMAIN}'><body>{body}</body></message>")
        return kind in ("starttls", "auth")


def serve(address: str, cert: str, key: str) -> None:
    """Serves until it is stopped."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def one(sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError, ElementTree.ParseError):
            Session(sock, context).serve()

    listener = socket.create_server((address, PORT), backlog=64)
    print("ready", flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=one, args=(sock,), daemon=True).start()


def ask(address: str) -> dict[str, Any]:
    """Logs in, sends a message, and waits until it comes back."""
    # The interpreter of the server has no such library.
    slixmpp = importlib.import_module("slixmpp")

    async def session() -> dict[str, Any]:
        client = slixmpp.ClientXMPP(f"user@{DOMAIN}", "secret")
        client.enable_direct_tls = False
        client.ssl_context.check_hostname = False
        client.ssl_context.verify_mode = ssl.CERT_NONE
        came: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        times: dict[str, float] = {}

        def begun(_: Any) -> None:
            times["session"] = time.monotonic()
            client.send_message(mto=f"echo@{DOMAIN}", mbody=TEXT, mtype="chat")

        client.add_event_handler("session_start", begun)
        client.add_event_handler("message", lambda message: came.set_result(message["body"]))
        began = time.monotonic()
        client.connect(address, PORT)
        body = await asyncio.wait_for(came, PATIENCE_S)
        ended = time.monotonic()
        await client.disconnect()
        return {"right": body == TEXT, "session_s": times["session"] - began, "seconds": ended - began}

    return asyncio.run(session())


def main() -> None:
    """Runs one end."""
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        print(json.dumps(ask(**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
