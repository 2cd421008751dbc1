"""The papers' figures, as far as their texts give numbers. One sentence for each says why this project's differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A figure of a paper, to stand beside the project's own."""

    source: str
    theirs: tuple[float, float]
    """The range that the paper gives over its pages or techniques, in percent of load time (negative is sooner)."""
    why: str


CELLS: dict[tuple[str, str], Published] = {
    (link, contender): Published(source, theirs, why)
    for link, source, theirs, why in (
        (
            "cdma-average",
            "WWW 2004, figure 6a",
            (-34, -26),
            "The browser of 2003 opened a few connections and looked names up one after the other; today's opens "
            "dozens at once and "
            "already fills this link to within some 20 % of the ideal, so that little is left to gain.",
        ),
        (
            "cdma-congested",
            "WWW 2004, figure 6b",
            (-55, -48),
            "Here today's browser harms itself: its many handshakes flood the short queue. One address saves them "
            "as it did then; "
            "what the serial lookups of 2003 cost on top is gone.",
        ),
    )
    for contender in ("longhaul-url", "longhaul-dns", "longhaul-paper", "longhaul-edge")
}

IMAGES: dict[str, Published] = {
    "satellite-256k": Published(
        "HTTPEP, figure 5", (-10, -10),
        "At this rate the bytes decide. The paper's second figure (-27 %) came of lossy recompression. On this link, "
        "Longhaul makes images smaller, too.",
    ),
    "satellite-500k": Published(
        "HTTPEP, figure 5", (-27, -27),
        "Theirs sends the images before they are asked for; a browser of today asks six at a time on HTTP/1.1, "
        "which leaves fewer "
        "round trips to save.",
    ),
    "satellite-2m": Published(
        "HTTPEP, figure 5", (-32, -32),
        "The faster the link, the more of the time is round trips: theirs are saved by pushing, ours by one warm "
        "connection.",
    ),
}  # fmt: skip

TEN_PAGES = Published(
    "Gomez et al., table III (UMTS, NettGain)", (-45, -45),
    "Speed-up 1.81 with one box and 2.41 with two; three quarters of their bytes were saved by lossy images, on a "
    "browser with two connections. Longhaul makes JPEG and PNG images smaller, and leaves GIF images.",
)  # fmt: skip
TEN_PAGES_PAIR_PERCENT = -59.0
"""1 - 1/2.41."""

CONNECTIONS = {"direct": (1110, 300), "longhaul-url": (200, 100), "longhaul-dns": (200, 300)}
"""TCP connections and DNS queries for 100 pages, from WWW 2004, figure 5 and section 4.2.1. Rounded as in the paper."""
CONNECTIONS_WHY = (
    "Today's browsers open up to six connections a name where that of 2003 had two, ask for A, AAAA and HTTPS "
    "records of each name, and share "
    "neither sockets nor looked-up names between sites: what one page opened is of no use to the next. So direct "
    "needs more of both, "
    "and DNS steering, which merged connections by address then, merges none over HTTP/1.1 now."
)

MOBILITY_WHY = (
    "The paper argues that each case works and measures none. Here the client keeps its address, both regions' "
    "PEPs have "
    "the same proxy address, and that address is reached from everywhere. In case B the new PEP resets "
    "connections it does "
    "not know, and today's browser does not ask again for everything that breaks off: pictures may be missing "
    "until the "
    "page is reloaded. With siblings (proxy.siblings), it sends their packets to the PEP that knows them. "
    "Two settings are needed: packets of connections that began elsewhere must not be taken for "
    "new ones "
    "(net.netfilter.nf_conntrack_tcp_loose=0; with the kernel's default, case A resets connections to origins "
    "that would "
    "have gone on), and the listeners must accept customers who come in from the wired side, which the rules of a "
    "plain "
    "gateway refuse."
)

FAIRNESS_WHY = (
    "Theirs: a second transfer of 600 kB timed out twice behind 15 to 20 s of queue before it could send, and a "
    "window clamped to "
    "the bandwidth-delay product took 10 to 20 % off page times. Queues here are shorter, as the transfers are of "
    "40 kB, which "
    "keeps the run short, and today's initial window and receive buffers differ from those of 2002."
)

FEC_WHY = (
    "Theirs: with 0.9 % of errors, 5 to 6 % of parity is best. With less than 0.2 %, parity that follows the channel "
    "saves about 5 %. Longhaul carries no forward error correction. Neither Envoy nor Linux nor a QUIC stack has an "
    "engine for it, and the radio links of today correct errors themselves."
)

NEXT_PAGE_WHY = (
    "Visitors are a model, because no public trace of clicks exists. All pages may be prefetched in it. A real site "
    "sets cookies, and its pages may not be. Links that visitors follow alike gain next to nothing. So Longhaul does "
    "not prefetch linked pages."
)
