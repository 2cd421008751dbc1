"""A mail server with IMAP and SMTP, both with STARTTLS, and clients of Python's standard library.

Each end runs in a process of its own, in its own namespace, and needs the standard library alone:

    python mail_ends.py serve ADDRESS CERT KEY     IMAP on port 143 and submission on port 587
    python mail_ends.py ask JSON                   one session; prints what came and how long it took, as JSON

The mailbox has one message of MESSAGE bytes. The server says "accepted N" for a message of N bytes.
"""

from __future__ import annotations

import contextlib
import imaplib
import json
import re
import smtplib
import socket
import ssl
import sys
import threading
import time
from typing import Any

IMAP, SUBMISSION = 143, 587
MESSAGE = b"Subject: a letter\r\n\r\n" + b"0123456789abcde\r\n" * 6000


class Session:
    """A server's connection of lines, which changes to TLS."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self.sock = sock
        self.context = context
        self.lines = sock.makefile("rb")

    def say(self, text: str) -> None:
        """Sends a line."""
        self.sock.sendall(text.encode() + b"\r\n")

    def hear(self) -> str:
        """Returns the next line. Raises at the end."""
        line = self.lines.readline()
        if not line:
            raise ConnectionError("the client left")
        return line.decode().rstrip("\r\n")

    def start_tls(self) -> None:
        """Goes on in TLS."""
        self.sock = self.context.wrap_socket(self.sock, server_side=True)
        self.lines = self.sock.makefile("rb")


def imap(session: Session) -> None:
    """A server of IMAP4rev1 (RFC 3501) with one message."""
    session.say("* OK the mailbox is ready")
    while True:
        tag, command, *_ = session.hear().split(" ", 2)
        match command.upper():
            case "CAPABILITY":
                session.say("* CAPABILITY IMAP4rev1 STARTTLS")
            case "STARTTLS":
                session.say(f"{tag} OK begin")
                session.start_tls()
                continue
            case "SELECT":
                session.say("* 1 EXISTS")
            case "FETCH":
                session.say(f"* 1 FETCH (BODY[] {{{len(MESSAGE)}}}")
                session.sock.sendall(MESSAGE)
                session.say(")")
            case "LOGOUT":
                session.say("* BYE")
                session.say(f"{tag} OK done")
                return
        session.say(f"{tag} OK done")


def submission(session: Session) -> None:
    """A server of message submission (RFC 6409)."""
    session.say("220 mail.example.org ESMTP")
    while True:
        match session.hear().split(" ")[0].upper():
            case "EHLO":
                session.say("250-mail.example.org")
                session.say("250 STARTTLS")
            case "STARTTLS":
                session.say("220 begin")
                session.start_tls()
            case "DATA":
                session.say("354 go on")
                size = 0
                while (line := session.hear()) != ".":
                    size += len(line) + 2
                session.say(f"250 accepted {size}")
            case "QUIT":
                session.say("221 bye")
                return
            case _:
                session.say("250 ok")


def serve_for_ever(address: str, cert: str, key: str) -> None:
    """Both servers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def answer(sock: socket.socket, talk: Any) -> None:
        with contextlib.suppress(OSError, ValueError):
            talk(Session(sock, context))

    def accept(listener: socket.socket, talk: Any) -> None:
        while True:
            sock, _ = listener.accept()
            # A server's short lines leave at once, as those of a server that writes them together.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=answer, args=(sock, talk), daemon=True).start()

    for port, talk in ((IMAP, imap), (SUBMISSION, submission)):
        listener = socket.create_server((address, port), backlog=64)
        threading.Thread(target=accept, args=(listener, talk), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


def trusting() -> ssl.SSLContext:
    """A client's context that accepts every certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def read_mail(address: str) -> tuple[bool, float]:
    """Reads the message over STARTTLS. Returns whether it is whole, and the seconds to the greeting."""
    began = time.monotonic()
    client = imaplib.IMAP4(address, IMAP, timeout=60)
    greeted = time.monotonic() - began
    client.starttls(trusting())
    client.login("user", "password")
    client.select()
    _, parts = client.fetch("1", "(BODY[])")
    client.logout()
    return isinstance(parts[0], tuple) and parts[0][1] == MESSAGE, greeted


def send_mail(address: str) -> tuple[bool, float]:
    """Sends the message over STARTTLS. Returns whether it arrived whole, and the seconds to the greeting."""
    began = time.monotonic()
    client = smtplib.SMTP(address, SUBMISSION, timeout=60)
    greeted = time.monotonic() - began
    client.starttls(context=trusting())
    client.ehlo()
    client.mail("a@example.org")
    client.rcpt("b@example.org")
    _, said = client.data(MESSAGE)
    client.quit()
    accepted = re.search(rb"accepted (\d+)", said)
    return bool(accepted) and int(accepted[1]) == len(MESSAGE), greeted


def main() -> None:
    """The command line."""
    match sys.argv[1:]:
        case ["serve", address, cert, key]:
            serve_for_ever(address, cert, key)
        case ["ask", text]:
            ask = json.loads(text)
            began = time.monotonic()
            try:
                right, greeted = {"imap": read_mail, "smtp": send_mail}[ask["do"]](ask["address"])
                seen: dict[str, Any] = {"right": right, "greeted": greeted}
            except (OSError, imaplib.IMAP4.error, smtplib.SMTPException) as problem:
                seen = {"right": False, "problem": str(problem)}
            print(json.dumps(seen | {"seconds": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    main()
