"""Links as they are: all cells in EXPERIMENTS.md, and the guide's page for those who decide."""

from __future__ import annotations

from .text import origin, share

LINKS = {"maritime": "ship", "geo": "geostationary", "rural-lte": "rural LTE", "leo": "low orbit"}
PAIR, CUBIC, DIRECT = "quick-start", "direct-cubic", "direct"
FAIR_QUEUE = "fair-queue"
PEERS = {FAIR_QUEUE: "fair queue", "wireguard": "WireGuard", "split-tcp": "split TCP"}
"""The ways that an operator could pick instead of a pair, and their words."""
BESIDE = (
    "idle", "one-https-download", "four-http-downloads", "four-https-downloads", "one-upload", "users-5", "users-15",
    "browser-15",
)  # fmt: skip
"""The scenarios of the guide's first table, and of its picture."""
FAULTS = ("loss-0.1", "loss-1", "loss-3", "loss-bursts", "outage-20s", "outage-40s", "rates-3x", "rates-third")
"""Those of its second table."""
GUIDE_LINKS = ("maritime", "geo")
SCHEMES = ("http", "https")
VALUES = {"page": "", "page, p50": ", median page", "page, p95": ", the slowest page of twenty", "back": ""}
"""The words of a value behind those of its scenario."""

Cell = dict
Key = tuple[str, str, str, str, str]


def by_key(run: dict) -> dict[Key, Cell]:
    """The cells by link, scenario, scheme, value and way."""
    return {(one["link"], one["scenario"], one["scheme"], one["what"], one["way"]): one for one in run["cells"]}


def verdict(cell: Cell | None) -> str:
    """The part of the direct time and its spread. It is bold where it is slower. A hidden one has no figure."""
    if cell is None:
        return ""
    match cell["verdict"]:
        case "unclear":
            return f"unclear, {loads(cell)}"
        case "failed":
            return f"**none of {cell['failed']} ended**"
        case _:
            cut = f", {cell['failed']} failed" if cell["failed"] else ""
            return f"{share(cell['ratio'])} ({cell['low']:.2f}-{cell['high']:.2f}){cut}"


def loads(cell: Cell) -> str:
    """The number of loads."""
    return f"{cell['loads']} load{'' if cell['loads'] == 1 else 's'}"


def cells_table(run: dict) -> list[str]:
    """One line a link, scenario, value and scheme."""
    found = by_key(run)
    rows = list(dict.fromkeys(key[:4] for key in found))
    peers = " | ".join(PEERS.values())
    lines = [
        f"| link | beside | | direct, s | direct, CUBIC | {peers} | pair | worst load of the pair |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for link, scenario, scheme, what in rows:
        ways = [found.get((link, scenario, scheme, what, way)) for way in (DIRECT, CUBIC, *PEERS, PAIR)]
        direct, *others = ways
        if direct is None:
            continue
        name = f"{direct['words']}{VALUES[what]}"
        cells = [LINKS[link], name, scheme, seconds(direct), *map(verdict, others), worst(ways[-1])]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def seconds(cell: Cell | None) -> str:
    """The time of a cell."""
    if cell is None:
        return ""
    cut = f", {cell['failed']} failed" if cell["failed"] else ""
    return f"none of {cell['failed']} ended" if cell["seconds"] is None else f"{cell['seconds']:.1f}{cut}"


def worst(cell: Cell | None) -> str:
    """The worst load as a part of the worst direct one, which says little where the spread hides the verdict."""
    judged = cell is not None and cell["verdict"] not in ("unclear", "failed")
    return f"{cell['worst_ratio']:.2f}" if cell and judged else ""


def source(run: dict) -> str:
    """The origin of the cells, and the number of beds that are missing."""
    # A crowd has one cell for all of its pages, so its count is none of loads.
    counts = [cell["loads"] for cell in run["cells"] if cell["what"] == "page" and cell["loads"]]
    left = run["beds_left"]
    missing = f"\n{left} bed{'s have' if left > 1 else ' has'} not run." if left else ""
    return origin("make experiments ONLY=field", run, counts, run["note"]) + missing


def experiment_block(run: dict) -> str:
    """Everything that was measured."""
    words = (
        "Parts of the direct time, with the spread of nine of ten draws of the loads. A figure is bold where all of\n"
        "the spread is above 1.02. Where the spread hides the verdict, more loads were made. If it stays hidden, no\n"
        "figure stands. A value after an outage is the time from the link's return to the first response. Clients are\n"
        "light ones, which look up no names. The pair has the files of `longhaul pair init` and the settings of\n"
        "`longhaul host`. The pages of a crowd wait for one another, so their spread is a little too narrow.\n"
        "The fair queue is that of the emulated link, because the kernel of this machine has none. Flows take turns\n"
        "in it. WireGuard runs in user space (`wireguard-go`) at both ends of the link. Split TCP is HAProxy on the\n"
        "ground."
    )
    return "\n\n".join([words, "\n".join(cells_table(run)), source(run)])


def guide_table(run: dict, scenarios: tuple[str, ...], link: str) -> str:
    """The times of some scenarios on one link."""
    found = by_key(run)
    lines = [
        "| | http direct | fair queue | pair | https direct | fair queue | pair |",
        "|---|---|---|---|---|---|---|",
    ]
    for scenario in scenarios:
        for what, words in VALUES.items():
            ways = (DIRECT, FAIR_QUEUE, PAIR)
            own = [found.get((link, scenario, scheme, what, way)) for scheme in SCHEMES for way in ways]
            first = next(filter(None, own), None)
            if first is None:
                continue
            cells = [time(cell) if way == DIRECT else change(cell) for way, cell in zip(ways * 2, own, strict=True)]
            lines.append(f"| {first['words']}{words} | {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else "No bed of this table has run yet."


def time(cell: Cell | None) -> str:
    """The time of a cell."""
    return "" if cell is None else f"{seconds(cell)} s" if cell["seconds"] is not None else "never"


def change(cell: Cell | None) -> str:
    """The time of another way, unless its spread hides the verdict."""
    if cell is None:
        return ""
    match cell["verdict"]:
        case "unclear":
            return "not decided"
        case "slower":
            return f"**{seconds(cell)} s**"
        case _:
            return time(cell)


def ship_block(run: dict) -> str:
    """Users on a ship."""
    return guide_table(run, BESIDE, "maritime")


def peers_block(run: dict) -> str:
    """A pair beside the peers on a ship's link."""
    found = by_key(run)
    ways = (DIRECT, *PEERS, PAIR)
    lines = [f"| | | {' | '.join(('direct', *PEERS.values(), 'pair'))} |", f"|---|---|{'---|' * len(ways)}"]
    for scenario, scheme, what in dict.fromkeys((one[1], one[2], one[3]) for one in found if one[4] in PEERS):
        own = [found.get(("maritime", scenario, scheme, what, way)) for way in ways]
        first = next(filter(None, own), None)
        if first is None or not any(own[2:-1]):
            continue
        lines.append(f"| {first['words']}{VALUES[what]} | {scheme} | {' | '.join(map(time, own))} |")
    return "\n".join(lines) if len(lines) > 2 else "No bed of this table has run yet."


def geo_block(run: dict) -> str:
    """Users of a geostationary link."""
    return guide_table(run, BESIDE, "geo")


def faults_block(run: dict) -> str:
    """A ship's link with loss and outages, and with a wrong `link:`."""
    return guide_table(run, FAULTS, "maritime")


def gain_block(run: dict) -> str:
    """The gain of fifteen users in one sentence a scheme."""
    found = by_key(run)
    lines = []
    for scheme in SCHEMES:
        pair = {what: found.get(("maritime", "users-15", scheme, what, PAIR)) for what in ("page, p50", "page, p95")}
        direct = {what: found.get(("maritime", "users-15", scheme, what, DIRECT)) for what in pair}
        if any(cell is None or cell["seconds"] is None for cell in (*pair.values(), *direct.values())):
            continue
        (half, slow), (half_direct, slow_direct) = (
            [f"{cell['seconds']:.1f} s" for cell in one.values() if cell] for one in (pair, direct)
        )
        lines.append(
            f"- Over {scheme}, half of the pages of fifteen users take at most {half}, and {half_direct} without a "
            "pair.\n"
            f"  One of twenty takes more than {slow}, and {slow_direct} without a pair."
        )
    return "\n".join(lines)


def verdicts_block(run: dict) -> str:
    """The number of cells in which a pair was slower, for each link."""
    lines = []
    for link, words in LINKS.items():
        own = [cell for cell in run["cells"] if cell["link"] == link and cell["way"] == PAIR]
        if not own:
            continue
        slower = [cell for cell in own if cell["verdict"] in ("slower", "failed")]
        unclear = sum(cell["verdict"] == "unclear" for cell in own)
        named = "; ".join(f"{cell['words']}{VALUES[cell['what']]}, {cell['scheme']}" for cell in slower)
        lines.append(f"| {words} | {len(own)} | {len(slower)}{f': {named}' if named else ''} | {unclear} |")
    return "\n".join(["| link | cells | slower than direct | not decided by the loads |", "|---|---|---|---|", *lines])
