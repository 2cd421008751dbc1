"""The day of mixed users in the guide's page on groups."""

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
