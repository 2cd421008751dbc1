"""A remote that asks its ground for connections. Run inside the namespace of the remote's host:

    python connects.py JSON     address, port, cert and key; and `to`, a list of HOST:PORT

It prints the status of each CONNECT, by its destination.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
from typing import Any

import h2.config
import h2.connection
import h2.events


def statuses(ask: dict[str, Any]) -> dict[str, int]:
    """Returns the status of each CONNECT. 0 where there was no response."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(ask["cert"], ask["key"])
    context.set_alpn_protocols(["h2"])
    found = dict.fromkeys(ask["to"], 0)
    with (
        socket.create_connection((ask["address"], ask["port"]), timeout=30) as plain,
        context.wrap_socket(plain) as pipe,
    ):
        client = h2.connection.H2Connection(h2.config.H2Configuration())
        client.initiate_connection()
        streams = {}
        for to in ask["to"]:
            stream = client.get_next_available_stream_id()
            streams[stream] = to
            fields = [(":method", "CONNECT"), (":authority", to), ("x-longhaul-client", "192.0.2.2")]
            client.send_headers(stream, fields)
        while not all(found.values()):
            pipe.sendall(client.data_to_send())
            data = pipe.recv(65536)
            if not data:
                break
            for event in client.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    found[streams[event.stream_id]] = int(dict(event.headers)[b":status"])
    return found


if __name__ == "__main__":
    print(json.dumps(statuses(json.loads(sys.argv[1]))))
