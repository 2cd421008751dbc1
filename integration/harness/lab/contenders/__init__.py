"""The contenders by name, in the order in which reports list them."""

from __future__ import annotations

from .base import LinkContender
from .direct import Direct
from .init_pair import init_pair_contenders
from .longhaul import edge_contenders
from .pair import pair_contenders
from .plain_envoy import plain_envoy_contenders
from .split_tcp import split_tcp_peers
from .squid import squid_contenders
from .ziproxy import Ziproxy

CONTENDERS: dict[str, LinkContender] = {
    one.name: one
    for one in (
        Direct(),
        *squid_contenders(),
        Ziproxy(),
        *split_tcp_peers(),
        *plain_envoy_contenders(),
        *edge_contenders(),
        *pair_contenders(),
        *init_pair_contenders(),
    )
}


def contender(name: str) -> LinkContender:
    """Returns one contender. A KeyError names those that exist."""
    if name not in CONTENDERS:
        raise KeyError(f"no contender is called {name}; there are {', '.join(CONTENDERS)}")
    return CONTENDERS[name]


__all__ = ["CONTENDERS", "LinkContender", "contender"]
