"""The guide's page on groups: weights, quotas and sums, and a day of mixed users."""

from __future__ import annotations

PARTS = {
    "morning": ("bridge, crew and others browse", "within its quota"),
    "noon": ("two of the crew download", "uses its quota up"),
    "afternoon": ("bridge and crew download", "slow"),
    "evening": ("a client of no group uploads", "slow"),
    "night": ("one of the crew browses alone", "slow"),
}


def day_block(run: dict) -> str:
    """The page times of a user of each group in each part of the day, and the sums."""
    figures = run["figures"]

    def page(group: str, part: str) -> str:
        seconds = figures.get(f"day_{group}_page_s_{part}")
        return "" if seconds is None else f"{seconds:.1f} s"

    lines = [
        "| part of the day | others | the crew is | a page of the bridge | a page of the crew |",
        "|---|---|---|---|---|",
    ]
    for part, (load, state) in PARTS.items():
        lines.append(f"| {part} | {load} | {state} | {page('bridge', part)} | {page('crew', part)} |")
    error, broken = 100 * figures["day_account_error"], figures["day_broken_responses"]
    source = f"`make bench ONLY=groups-day` measured this on {run['date']}: median times of a light page over https."
    sums = f"The accounts differ from the bytes on the connections by {error:.1f}%, and {broken:.0f} pages broke."
    return "\n".join([*lines, "", source, sums])


def measured_block(run: dict) -> str:
    """The parts of clients that groups give, and the sums."""
    figures = run["figures"]

    def parts(*names: str) -> str:
        return ", ".join(f"{100 * figures[name]:.1f}%" for name in names)

    rows = (
        (
            "part of one client of weight 4 beside four of weight 1: downloads over http, https",
            "50%",
            parts("bridge_part_http", "bridge_part_https"),
        ),
        ("the same of uploads over http", "50%", parts("bridge_part_uploads")),
        (
            "part of a slow client beside one of the same weight: http, https",
            "9.1%",
            parts("slow_part_http", "slow_part_https"),
        ),
        ("responses to a slow client that broke off", "0", f"{figures['quota_cut_responses']:.0f}"),
        (
            "difference of the accounts to the bytes on the connections, in a minute whose downloads break off",
            "0%",
            parts("account_error"),
        ),
        ("part of no client in that minute", "", parts("account_of_no_client")),
    )
    lines = ["| | due | figure |", "|---|---|---|", *(f"| {what} | {due} | {figure} |" for what, due, figure in rows)]
    return "\n".join([*lines, "", f"`make bench ONLY=groups` measured this on {run['date']}."])
