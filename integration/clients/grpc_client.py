"""Calls each method of the gRPC server once, and prints what it got.

grpc_client.py HOST:PORT
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable

import grpc

SERVICE = "longhaul.Sample"
TIMEOUT_S = 20.0


def main(at: str) -> int:
    """Prints a line for each call."""
    with grpc.insecure_channel(at) as channel:
        calls: dict[str, Callable[[], Iterable[bytes]]] = {
            "one, one": lambda: [channel.unary_unary(f"/{SERVICE}/OneOne")(b"abc" * 30_000, timeout=TIMEOUT_S)],
            "one, status": lambda: [channel.unary_unary(f"/{SERVICE}/OneOne")(b"status x", timeout=TIMEOUT_S)],
            "one, many": lambda: channel.unary_stream(f"/{SERVICE}/OneMany")(b"50", timeout=TIMEOUT_S),
            "many, one": lambda: [
                channel.stream_unary(f"/{SERVICE}/ManyOne")(iter([b"x" * 5000] * 40), timeout=TIMEOUT_S)
            ],
            "many, many": lambda: channel.stream_stream(f"/{SERVICE}/ManyMany")(
                iter([b"message %d" % n for n in range(40)]), timeout=TIMEOUT_S
            ),
        }
        for name, call in calls.items():
            try:
                messages = list(call())
                print(name, len(messages), hashlib.sha256(b"\n".join(messages)).hexdigest())
            except grpc.RpcError as error:
                # The text of a connection that failed has times and addresses.
                print(name, error.code())
        try:
            answer, call = channel.unary_unary(f"/{SERVICE}/OneOne").with_call(b"abc", timeout=TIMEOUT_S)
            print("trailers", answer, dict(call.trailing_metadata() or ()).get("length"))
        except grpc.RpcError as error:
            print("trailers", error.code())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
