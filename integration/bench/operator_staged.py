"""Stages every fault at a running pair, and measures when status, page and journal name it and whether the cure that
they name mends it."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import operator_commands
from bench.operator_bed import LAN, Bed, pair_bed
from bench.operator_faults import CONFIG, Ship, clocked
from bench.operator_quick import PAIR, walk
from bench.operator_table import TABLE, Fault, listed
from bench.operator_watch import PLACES, Clients, Look, Watch, healthy
from harness.host.clock import SOURCE
from harness.machines.trees import DEBIAN
from harness.results.figures import table

SOON_S = 10
"""A fault should be named within this time."""
PATIENCE_S, QUICK_PATIENCE_S = 45, 15
"""The time for which a name is waited for."""
MENDED_S = 60
"""The time in which everything should work again after a cure."""


FINDING = re.compile(r"^(?:error|warning).*(?:\n .*)*", re.M)
"""A finding of `longhaul netcheck`, with its cure on the next lines."""


@dataclass
class Outcome:
    """The measurement of one fault."""

    name: str
    at: str
    seconds: dict[str, float | None] = field(default_factory=dict)
    """Until each place named it. None if it did not."""
    words: list[str] = field(default_factory=list)
    """The problems and warnings of `longhaul status` at the end of the wait."""
    told: str = ""
    """The text that named it first."""
    users: dict[str, str] = field(default_factory=dict)
    """The failures that clients met meanwhile."""
    cure: str = ""
    """The cure that was named. Empty if there was none."""
    mended_s: float | None = None
    """Until everything worked again after the cure. None if it did not, or if no cure was named."""
    journal: str = ""
    """The end of the journal at that time."""
    netcheck: str = ""
    """The line of `longhaul netcheck` that names it, which is asked where status names no cure."""
    note: str = ""

    @property
    def named_s(self) -> float | None:
        """Until the operator can read it: in status, or in the journal if the service does not run."""
        return self.seconds.get("told")

    def is_soon(self) -> bool:
        """True if it was named in time."""
        return self.named_s is not None and self.named_s <= SOON_S


def stage_all(folder: Path, deb: Path, *, quick: bool, only: Sequence[str] = ()) -> list[Outcome]:
    """Brings a pair up by the quick start, and stages every fault at it, one after the other."""
    check_names()
    with pair_bed(folder, DEBIAN, deb) as bed:
        clocked(bed.machine("ship"), compiled_clock(folder))
        walked = walk(bed, PAIR, DEBIAN)
        if walked.wrong:
            raise RuntimeError(walked.wrong)
        with Clients(bed) as clients, ExitStack() as stack:
            ship = Ship(bed, clients)
            stack.callback(lambda: ship.stack.close())
            home = {end: archive(bed, end) for end in ("ship", "ground")}
            if healthy(bed, clients, time.time(), 120) is None:
                raise RuntimeError(f"the pair of the quick start does not serve: {clients.failed(0)}")
            outcomes = []
            for fault in TABLE:
                if only and not any(word in fault.name for word in only):
                    continue
                outcomes.append(one := attempt(ship, fault, QUICK_PATIENCE_S if quick else PATIENCE_S))
                print(line_of(one), flush=True)
                one.note = "; ".join(filter(None, (one.note, recover(ship, home))))
            return outcomes


def check_names() -> None:
    """Refuses to run if FAULTS.md lists other faults than the table."""
    here, there = [fault.name for fault in TABLE], listed()
    if here != there:
        raise RuntimeError(f"FAULTS.md lists other faults: {sorted(set(here) ^ set(there)) or 'in another order'}")


def compiled_clock(folder: Path) -> Path:
    """The library that gives programs another time."""
    library = folder / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, SOURCE], check=True)
    return library


def archive(bed: Bed, end: str) -> bytes:
    """The configuration of an end, to be put back."""
    return subprocess.run(
        bed.machine(end).line("tar -C /etc -cf - longhaul"), check=True, capture_output=True, timeout=60
    ).stdout


def attempt(ship: Ship, fault: Fault, patience_s: float) -> Outcome:
    """Measures a fault. One that cannot be staged here counts as not named, and the others follow."""
    try:
        return measure(ship, fault, patience_s)
    except (AssertionError, RuntimeError, subprocess.SubprocessError) as problem:
        return Outcome(fault.name, fault.at, note=f"not measured: {problem}"[:600])


def measure(ship: Ship, fault: Fault, patience_s: float) -> Outcome:
    """Stages one fault, waits until it is named, and carries out the cure."""
    outcome = Outcome(fault.name, fault.at)
    fault.prepare(ship)
    watch = Watch(ship.end(fault.at))
    before = named(watch.look(), fault.words)
    if before:
        outcome.note = f"said before it was there, at {', '.join(before)}"
    staged = time.time()
    fault.stage(ship)
    began = time.time()
    look = follow(watch, fault, outcome, began, patience_s)
    outcome.journal = look.journal[-2000:]
    outcome.users = ship.clients.failed(staged)
    found = re.search(fault.cure, told(look, fault), re.I) if outcome.named_s is not None else None
    while not found and outcome.is_soon() and time.time() - began < SOON_S:
        # The reason may come some seconds after the problem.
        time.sleep(1)
        look = watch.look()
        found = re.search(fault.cure, told(look, fault), re.I)
    outcome.words = look.problems()
    if not found:
        found = asked(ship, fault, outcome)
    if found:
        outcome.cure = found[0]
        cured = time.time()
        if fault.mend:
            fault.mend(ship, found[0])
        else:
            ship.end(fault.at).run(found[0], check=False)
        outcome.mended_s = healthy(ship.bed, ship.clients, cured, MENDED_S)
    return outcome


def asked(ship: Ship, fault: Fault, outcome: Outcome) -> re.Match[str] | None:
    """Types `longhaul netcheck`, the next command of an operator, and looks for name and cure in its output."""
    seconds, said = operator_commands.netcheck(ship.end(fault.at))
    if seconds is None:
        return None
    said = "\n".join(FINDING.findall(said))
    outcome.netcheck = line_with(said, fault.words)
    return re.search(fault.cure, said, re.I) if outcome.netcheck else None


def follow(watch: Watch, fault: Fault, outcome: Outcome, began: float, patience_s: float) -> Look:
    """Looks once a second, until every place has named the fault or the patience ends."""
    outcome.seconds = dict.fromkeys((*PLACES, "told"), None)
    counts = PLACES if fault.starts else ("status", "journal")
    while True:
        asked = time.time()
        look = watch.look()
        took = time.time() - began
        for place in named(look, fault.words):
            if outcome.seconds[place] is None:
                outcome.seconds[place] = round(took, 1)
                if place != "page" and (place == "status" or not fault.starts) and outcome.seconds["told"] is None:
                    outcome.seconds["told"] = round(took, 1)
                    outcome.told = line_with(getattr(look, place), fault.words)
        if took > patience_s or all(outcome.seconds[place] is not None for place in counts):
            return look
        time.sleep(max(0.0, 1 - (time.time() - asked)))


def named(look: Look, words: str) -> list[str]:
    """The places that name a fault. Of status, its problems and warnings count. Its rows stand there always."""
    told = {"status": "\n".join(look.problems()), "page": look.page, "journal": look.journal}
    return [place for place in PLACES if re.search(words, told[place], re.I)]


def told(look: Look, fault: Fault) -> str:
    """The text in which a cure counts: the lines of status, and the journal if the service may not run."""
    text = "\n".join(look.problems())
    return text if fault.starts else f"{text}\n{look.journal}"


def line_with(text: str, words: str) -> str:
    """The line that names the fault."""
    return next((line.strip()[:300] for line in text.splitlines() if re.search(words, line, re.I)), "")


def recover(ship: Ship, home: dict[str, Any]) -> str:
    """Removes the fault, and waits until the pair serves. If it does not, starts both ends again as they were."""
    ship.stack.close()
    if healthy(ship.bed, ship.clients, time.time(), 60) is not None:
        return ""
    for end in ("ground", "ship"):
        machine = ship.end(end)
        subprocess.run(machine.line("tar -C /etc -xpf -"), input=home[end], check=True, timeout=60)
        machine.run("systemctl reset-failed longhaul; systemctl restart longhaul", check=False, timeout_s=240)
    ship.ship.run(f"rm -f /run/longhaul-host/{LAN}.json; nft delete table inet longhaul", check=False)
    ship.ship.run(f"systemctl restart longhaul-host@{LAN}", check=False)
    if healthy(ship.bed, ship.clients, time.time(), 120) is None:
        raise RuntimeError(f"the pair does not serve again: {ship.clients.failed(time.time() - 60)}")
    return f"did not recover by itself; {CONFIG} was restored and both ends were restarted"


def rows(outcomes: Sequence[Outcome]) -> str:
    """The table for a terminal."""
    found = [["fault", "status s", "page s", "journal s", "cure named", "mended s"]]
    for one in outcomes:
        seconds = [shown(one.seconds.get(place)) for place in PLACES]
        found.append([one.name, *seconds, one.cure[:40] or "-", shown(one.mended_s) if one.cure else "-"])
    return table(found)


def shown(seconds: float | None) -> str:
    """Seconds, or a dash."""
    return "-" if seconds is None else f"{seconds:.0f}"


def line_of(one: Outcome) -> str:
    """One fault in a line, while the bench runs."""
    parts = [
        f"{one.name}: {one.seconds}", f"told: {one.told[:160]!r}", f"words: {one.words}", f"cure {one.cure!r}",
        f"netcheck {one.netcheck!r}", f"mended {one.mended_s}", f"users {one.users}", one.note,
    ]  # fmt: skip
    return "; ".join(part for part in parts if part)


def figures(outcomes: Sequence[Outcome]) -> dict[str, float | None]:
    """The figures of all faults."""
    cures = [one for one in outcomes if one.cure]
    return {
        "faults_staged": len(outcomes),
        "faults_named_in_10s": sum(one.is_soon() for one in outcomes),
        "faults_on_page_in_10s": sum((one.seconds.get("page") or SOON_S + 1) <= SOON_S for one in outcomes),
        "faults_in_journal_in_10s": sum((one.seconds.get("journal") or SOON_S + 1) <= SOON_S for one in outcomes),
        "faults_in_netcheck": sum(bool(one.netcheck) for one in outcomes),
        "cures_named": len(cures),
        "named_cure_mends": sum(one.mended_s is not None for one in cures) / len(cures) if cures else None,
    }


def details(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """All of it, for the results."""
    return [asdict(one) for one in outcomes]
