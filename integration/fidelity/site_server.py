"""The origin of the project's own pages: serves the site files over http and https, with all hosts on one address.

It is a separate program, because it runs in the namespace that is the Internet:

    python site_server.py --sites FOLDER --address ADDRESS --cert PEM --key PEM

It runs beside the origins program, because these pages need responses that depend on the request's cookie or referrer.
"""

from __future__ import annotations

import argparse
import re
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fidelity.sitefile import Answer, read_all


class Handler(BaseHTTPRequestHandler):
    """Serves the requests of one connection."""

    protocol_version = "HTTP/1.1"
    answers: dict[str, list[Answer]]
    scheme: str

    def _respond(self) -> None:
        # An unread body would be parsed as the next request.
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = f"{self.scheme}://{self.headers.get('Host', '')}{self.path}"
        known = [one for one in self.answers.get(url, []) if self.command in one.methods]
        chosen = next((one for one in known if self._meets(one)), None)
        if chosen is None:
            chosen = Answer(url, status=403 if known else 404, body=b"the site file has no answer for this request\n")
        body, status, headers = chosen.body, chosen.status, list(chosen.headers)
        part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if part and status == 200 and int(part[1]) < len(body):
            first, last = int(part[1]), min(int(part[2] or len(body) - 1), len(body) - 1)
            headers.append(("Content-Range", f"bytes {first}-{last}/{len(body)}"))
            body, status = body[first : last + 1], 206
        self.send_response_only(status)
        for name, value in headers:
            if "{origin}" in value:
                if not self.headers.get("Origin"):
                    continue
                value = value.replace("{origin}", self.headers["Origin"])
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(body)

    def _meets(self, answer: Answer) -> bool:
        return all(
            (self.headers.get(name) is None) if text == "-" else text in self.headers.get(name, "")
            for name, text in answer.needs
        )

    do_GET = do_HEAD = do_POST = do_OPTIONS = _respond  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: the runs compare the browser's own records."""


def main() -> None:
    """Serves until it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("sites", "address", "cert", "key"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    answers: dict[str, list[Answer]] = {}
    for site in read_all(Path(given.sites)):
        for one in site.answers:
            answers.setdefault(one.url, []).append(one)
    for scheme, port in (("http", 80), ("https", 443)):
        handler = type("SiteHandler", (Handler,), {"answers": answers, "scheme": scheme})
        server = ThreadingHTTPServer((given.address, port), handler)
        server.daemon_threads = True
        if scheme == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(given.cert, given.key)
            # The thread of the connection makes the handshake, so one slow client does not block the others.
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
