"""A resolver that adds records about other names to its responses, and the judgement of a client that believes none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dnslib import CNAME, QTYPE, RCODE, RR, SOA, A, DNSRecord

from harness.net.namespaces import Namespace
from harness.net.topology import RESOLVER
from harness.origins.name_server import NameServer

FALSE_ADDRESS = "203.0.113.66"
TTL_S = 1
NO_DATA = SOA("ns.example.org", "nobody.example.org", (1, 3600, 600, 86400, TTL_S))


class HostileResolver(NameServer):
    """Has the address of each name, or the name that an alias leads to, and a denial for each other type. Each response
    has false addresses of all names of `targets`, in all its sections."""

    def __init__(self, namespace: Namespace, truth: Mapping[str, str], targets: Sequence[str]) -> None:
        super().__init__(lambda *_: None, address=RESOLVER, port=53, ttl=TTL_S, namespace=namespace)
        self._truth, self._targets = truth, targets
        self.added = 0
        """The responses so far with false addresses."""

    def _reply(self, query: DNSRecord) -> bytes:
        return bytes(self._message(query).pack())

    def _message(self, query: DNSRecord) -> DNSRecord:
        reply = query.reply()
        name, kind = str(query.q.qname).lower().rstrip("."), QTYPE[query.q.qtype]
        if name not in self._truth:
            reply.header.rcode = RCODE.NXDOMAIN
        chain = [name]
        while (leads_to := self._truth.get(chain[-1])) in self._truth:
            reply.add_answer(RR(chain[-1], QTYPE.CNAME, rdata=CNAME(leads_to), ttl=TTL_S))
            chain.append(leads_to)
        if kind != "A" or leads_to is None:
            reply.add_auth(RR("example.org", QTYPE.SOA, rdata=NO_DATA, ttl=TTL_S))
            return reply
        reply.add_answer(RR(chain[-1], QTYPE.A, rdata=A(leads_to), ttl=TTL_S))
        for target in self._targets:
            if target not in chain:
                for add in (reply.add_answer, reply.add_auth, reply.add_ar):
                    add(RR(target, QTYPE.A, rdata=A(FALSE_ADDRESS), ttl=86400))
        self.added += 1
        return reply


def addresses_of(message: DNSRecord) -> list[str]:
    """Returns the addresses of the name in the question. Records of names that no alias leads to do not count."""
    name = str(message.q.qname).lower()
    for _ in range(len(message.rr) + 1):
        own = [one for one in message.rr if str(one.rname).lower() == name]
        found = [str(one.rdata) for one in own if one.rtype == QTYPE.A]
        alias = next((str(one.rdata).lower() for one in own if one.rtype == QTYPE.CNAME), None)
        if found or alias is None:
            return sorted(found)
        name = alias
    return []
