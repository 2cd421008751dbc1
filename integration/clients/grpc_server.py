"""A gRPC server with one method of each kind, over HTTP/2 without TLS.

grpc_server.py ADDRESS:PORT
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent import futures

import grpc

SERVICE = "longhaul.Sample"


def one_one(request: bytes, context: grpc.ServicerContext) -> bytes:
    """Reverses. Ends with trailers, or with the status that the request names."""
    if request.startswith(b"status "):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, request.decode())
    context.set_trailing_metadata((("length", str(len(request))),))
    return request[::-1]


def one_many(request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:  # noqa: ARG001 - the library's order
    """Sends so many messages as the request says."""
    for number in range(int(request)):
        yield b"%d" % number * 1000


def many_one(requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:  # noqa: ARG001 - the library's order
    """Counts messages and bytes."""
    sizes = [len(one) for one in requests]
    return b"%d %d" % (len(sizes), sum(sizes))


def many_many(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:  # noqa: ARG001 - as above
    """Reverses each message when it comes."""
    for one in requests:
        yield one[::-1]


def main(at: str) -> None:
    """Serves until it is stopped."""
    server = grpc.server(futures.ThreadPoolExecutor(16))
    methods = {
        "OneOne": grpc.unary_unary_rpc_method_handler(one_one),
        "OneMany": grpc.unary_stream_rpc_method_handler(one_many),
        "ManyOne": grpc.stream_unary_rpc_method_handler(many_one),
        "ManyMany": grpc.stream_stream_rpc_method_handler(many_many),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    server.add_insecure_port(at)
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1])
