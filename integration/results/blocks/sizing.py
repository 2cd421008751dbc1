"""The guide's page on sizing: what a box, an idle link and a connection take."""

from __future__ import annotations

from .text import figure

ROWS = {
    "work": (
        ("objects of 16 KiB that pass through an edge",
         "{native_instructions_vs_plain_envoy:.2f} of the requests that a plain Envoy passes, by instructions, and "
         "{native_object_vs_plain_envoy:.2f} by time", "edge"),
        ("the same from the edge's cache",
         "{native_cache_hit_rps_vs_squid:.2f} of the requests that Squid answers from memory", "edge"),
    ),
    "memory": (
        ("all programs of a box with one core, idle",
         "edge {edge_rss_mib:.0f} MiB, remote {remote_rss_mib:.0f} MiB, ground {ground_rss_mib:.0f} MiB", "small-box"),
        ("the same after an idle hour on a metered link",
         "remote {remote_rss_after_hour_mib:.0f} MiB, ground {ground_rss_after_hour_mib:.0f} MiB", "small-box"),
        ("each idle client connection that made a request", "{idle_connection_kib:.0f} KiB", "edge"),
        ("a page that stands still half way", "{memory_per_page_kib:.0f} KiB", "url-rewrite"),
    ),
}  # fmt: skip
"""The rows of two tables: words, figures with their units, and their bench."""


def capacity_block(results: dict) -> str:
    """The capacity of one core at each end, and the origin of the figures."""
    lines = [
        "| one core of | pages of the mix a second | users at a page every 20 s | memory of 1000 idle users |",
        "|---|---|---|---|",
    ]
    roles = ("edge", "remote", "ground")
    ends = {role: role for role in roles} | {f"wasm_{role}": f"{role}, wasm filters" for role in roles}
    for role, name in ends.items():
        pages, users, mib = (
            figure(results, role, what)
            for what in ("pages_per_core_second", "users_per_core", "mib_per_1000_idle_users")
        )
        lines.append(f"| {name} | {pages:.0f} | {round(users, -2):.0f} | {mib:.0f} MiB |")
    note = f", {results['machine_note']}" if results.get("machine_note") else ""
    return "\n".join([*lines, "", f"`make bench ONLY=capacity` measured this. Machine: {results['machine']}{note}."])


def idle_hour_block(results: dict) -> str:
    """The bytes of an idle hour by the price of the link."""
    hour = "8 minutes of it, without the ground's probes of every 30 minutes" if results["quick"] else "an hour of it"
    return "\n".join(
        [
            "| `link.price` | KB an hour, both directions | measured by |",
            "|---|---|---|",
            f"| `free` | {figure(results, 'free_idle_hour_kb'):.0f} "
            "| `make bench ONLY=small-box`, on a link of 600 ms, 4 minutes of it |",
            f"| `metered` | {figure(results, 'metered_idle_hour_kb'):.0f} | the same, {hour} |",
        ]
    )


def work_block(benches: dict[str, dict]) -> str:
    """The other work of one core."""
    return "\n".join(["| other work of one core | figure | measured by |", "|---|---|---|", *rows("work", benches)])


def memory_block(benches: dict[str, dict]) -> str:
    """The memory of programs, connections and pages."""
    return "\n".join(["| part | figure | measured by |", "|---|---|---|", *rows("memory", benches)])


def rows(table: str, benches: dict[str, dict]) -> list[str]:
    """The lines of a table. Raises ValueError for a figure that its bench lacks."""
    lines = []
    for words, figures, bench in ROWS[table]:
        try:
            text = figures.format(**benches[bench]["figures"])
        except KeyError as missing:
            raise ValueError(
                f"{bench} lacks the figure {missing}: run make bench ONLY={bench}, and make goals"
            ) from None
        lines.append(f"| {words} | {text} | `make bench ONLY={bench}` |")
    return lines
