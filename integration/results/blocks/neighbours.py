"""The guide's page on neighbours: shares of a ship's link, with them and without, and what its users gain."""

from __future__ import annotations

SHARES = {
    "part of a client with 16 downloads, beside four clients with one each": ("greedy_part_{}", "{:.0%}"),
    "Jain's index of these five clients": ("jain_{}", "{:.2f}"),
    "payload of their downloads to the rate of the link": ("rate_used_{}", "{:.0%}"),
    "a light page beside another client's four downloads, to the idle link": (
        "{}_page_beside_4_downloads_vs_idle",
        "{:.1f}",
    ),
    "the same beside one download each of four clients": ("{}_page_beside_4_clients_vs_idle", "{:.1f}"),
}
"""Figures with shares and without: their names, with the scheme left open, and their form."""
USERS = {
    "payload of one download to the rate of the link": ("rate_used_alone_{}", "{:.0%}"),
    "Jain's index of uploads, 16 beside four clients with one each": ("jain_uploads_{}", "{:.2f}"),
    "Jain's index of downloads, where the link carries half of the stated rate": ("jain_half_rate_{}", "{:.2f}"),
    "the median wait in the queue of the modem then": ("half_rate_queue_ms_{}", "{:.0f} ms"),
    "fifteen users load light pages with pauses: the median page, to that without a pair": (
        "ship_15_users_p50_vs_direct_{}",
        "{:.2f}",
    ),
    "the page that only one in twenty exceeds, to that without a pair": ("ship_15_users_p95_vs_direct_{}", "{:.2f}"),
    "packets that the queues of the link drop, to those without a pair": ("drops_vs_direct_15_users_{}", "{:.0f}"),
    "an outage of 40 s: time from its end to the first response to a new request, to that without a pair": (
        "outage_40s_back_vs_direct_{}",
        "{:.2f}",
    ),
    "time from its end until half of the requests that waited are done": ("outage_waiting_{}_fair_s", "{:.1f} s"),
    "the same without a pair": ("outage_waiting_{}_direct_s", "{:.1f} s"),
}
"""Figures with shares alone."""


def measured_block(run: dict) -> str:
    """The shares and the queue of the modem, then users and an outage."""
    figures = run["figures"]

    def both(name: str, form: str, way: str = "") -> str:
        return ", ".join(form.format(figures[name.format(scheme) + way]) for scheme in ("http", "https"))

    def row(*cells: str) -> str:
        return f"| {' | '.join(cells)} |"

    lines = [row("over http, https", "without shares", "with shares"), "|---|---|---|"]
    lines += [row(what, both(*place, "_unshared"), both(*place)) for what, place in SHARES.items()]
    queues = (f"{figures[f'queue_p50_ms{way}']:.0f} ms" for way in ("_unshared", ""))
    lines.append(row("median wait in the queue of the modem beside downloads, of both", *queues))
    lines += ["", row("over http, https", "with shares"), "|---|---|"]
    lines += [row(what, both(*place)) for what, place in USERS.items()]
    return "\n".join([*lines, "", f"`make bench ONLY=neighbours` measured this on {run['date']}."])
