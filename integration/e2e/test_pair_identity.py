"""Access to a pair: names must match exactly, and the authorities may change while both ends run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.bed import made_to_order
from e2e.pair_bed import LAB, PairBed, standing_pair
from harness.boxes.pair import PIPE_PORT, REMOTE_NAME
from harness.clients.commands import Answer, Curl
from harness.host.artifacts import built
from harness.host.waiting import wait_for
from harness.lab.line import FAR
from harness.net.authority import Authority, KeyFiles, issue_as_written

IN_FORCE_S = 2.0


@pytest.fixture(scope="module")
def bed(root_bed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairBed]:  # noqa: ARG001 - order of set-up
    with standing_pair(tmp_path_factory.mktemp("identity"), profile="leo") as standing:
        standing.until_warm()
        yield standing


def authority(bed: PairBed) -> KeyFiles:
    """Returns the pair's own authority."""
    ca = Path(bed.pair.identity["ca"])
    return KeyFiles(ca, ca.with_suffix(".key"))


def gets_in(bed: PairBed, shown: KeyFiles) -> bool:
    """Does the pipe accept a client with this certificate?"""
    certificate = ("--insecure", "--cert", str(shown.cert), "--key", str(shown.key))
    asked = Curl(bed.folder, bed.line.near).get(
        f"https://{FAR}:{PIPE_PORT}/", "--http2", "--header", "Host: hold.pair.invalid:1", *certificate, timeout_s=10
    )
    assert asked.status or asked.problem, asked
    return asked.status > 0


def is_soon_in(bed: PairBed, shown: KeyFiles, since_s: float) -> float:
    """Waits until the pipe accepts the certificate, and returns the seconds since `since_s`."""
    wait_for("the new certificate taken", lambda: gets_in(bed, shown), timeout_s=30, interval_s=0.05)
    return time.monotonic() - since_s


def replace(path: Path, text: str) -> None:
    """Replaces the file by a rename, as `mv` and a kubelet do."""
    fresh = path.with_suffix(".fresh")
    fresh.write_text(text)
    fresh.rename(path)


def test_no_wildcard_and_no_other_case_passes_for_the_name_of_a_remote(bed: PairBed, folder: Path) -> None:
    own = authority(bed)
    for name in (
        "*.example",
        "SHIP.example",
        "Ship.Example",
        "ship.example.evil.example",
        "xship.example",
        "ship-example",
    ):
        assert not gets_in(bed, issue_as_written(folder / name.replace("*", "_"), own, name)), name
    assert gets_in(bed, issue_as_written(folder / "right", own, REMOTE_NAME))


class Download:
    """A download that is under way during a change, on the pipe from before it."""

    def __init__(self, bed: PairBed) -> None:
        self.answers: list[Answer] = []
        url = made_to_order(LAB, body="noise", size=150_000, chunk=5_000, pause=100)
        self.thread = threading.Thread(target=lambda: self.answers.append(bed.curl.get(url)))
        self.thread.start()

    def is_whole(self) -> bool:
        self.thread.join()
        return [(one.status, len(one.body), one.problem) for one in self.answers] == [(200, 150_000, "")]


def pipes_and_drains(bed: PairBed) -> tuple[float, str]:
    draining = bed.pair.ground.admin("/stats?filter=total_filter_chains_draining")
    return bed.pair.connections("pipe")["total"], draining


def test_a_new_authority_of_a_pair_needs_no_restart(bed: PairBed, folder: Path) -> None:
    old, new = authority(bed), Authority(folder)
    of_the_new = issue_as_written(folder / "new", new.files, REMOTE_NAME)
    of_the_old = issue_as_written(folder / "old", old, REMOTE_NAME)
    assert not gets_in(bed, of_the_new)
    before, download = pipes_and_drains(bed), Download(bed)
    only_old = old.cert.read_text()
    try:
        began = time.monotonic()
        replace(old.cert, only_old + new.files.cert.read_text())
        took = is_soon_in(bed, of_the_new, began)
        assert gets_in(bed, of_the_old)
        assert took < IN_FORCE_S
        assert download.is_whole()
        assert pipes_and_drains(bed) == before
    finally:
        replace(old.cert, only_old)
    wait_for("the new authority gone", lambda: not gets_in(bed, of_the_new), timeout_s=30)


def test_a_further_remote_drains_nobody(bed: PairBed, folder: Path) -> None:
    second = issue_as_written(folder / "second", authority(bed), "second.example")
    assert not gets_in(bed, second)
    before, download = pipes_and_drains(bed), Download(bed)
    config = bed.pair.ground.config
    lines = config.read_text().splitlines()
    split = next(json.loads(line.partition(": ")[2]) for line in lines if line.startswith("split: "))
    split["peer"] = [REMOTE_NAME, "second.example"]
    others = [line for line in lines if not line.startswith("split: ")]
    replace(config, "\n".join([*others, f"split: {json.dumps(split)}", ""]))
    is_soon_in(bed, second, time.monotonic())
    assert download.is_whole()
    assert pipes_and_drains(bed) == before


def pair_check(bed: PairBed, shown: KeyFiles | None = None, trusted: Path | None = None) -> tuple[int, str]:
    """Runs `longhaul pair check` on the remote, with its own certificate and authority or with others."""
    own = bed.pair.remote.config
    config = own.with_name("other.yaml")
    text = own.read_text()
    if shown:
        identity = bed.pair.identity
        text = text.replace(identity["cert"], str(shown.cert)).replace(identity["key"], str(shown.key))
    if trusted:
        text = text.replace(bed.pair.identity["ca"], str(trusted))
    config.write_text(text)
    done = bed.line.near.run(built("longhaul"), "pair", "check", config, check=False)
    return done.returncode, done.stdout


def test_pair_check_says_which_certificate_the_ground_refuses(bed: PairBed, folder: Path) -> None:
    code, said = pair_check(bed)
    assert code == 0, said
    for line in (
        f"{FAR}:{PIPE_PORT} responds within",
        "the ground accepts the certificate of this remote",
        "the clocks of both ends agree",
    ):
        assert f"ok       {line}" in said, said
    refused = "problem  the ground refuses the certificate of this remote: "
    own, foreign = authority(bed), Authority(folder).files
    both = folder / "both.pem"
    both.write_text(own.cert.read_text() + foreign.cert.read_text())
    out_of_time = "it has expired or is not valid yet"
    for shown, reason in (
        (issue_as_written(folder / "stranger", own, "stranger.example"), "it has no name that `split.peer`"),
        (issue_as_written(folder / "foreign", foreign, REMOTE_NAME), "no authority in `split.ca`"),
        (issue_as_written(folder / "old", own, REMOTE_NAME, starts_in_days=-60), out_of_time),
        (issue_as_written(folder / "new", own, REMOTE_NAME, starts_in_days=3), out_of_time),
    ):
        code, said = pair_check(bed, shown, both)
        assert code == 1, said
        assert refused + reason in said, said


def test_pair_check_on_the_ground_names_the_command_for_the_remote(bed: PairBed) -> None:
    done = bed.line.gateway.run(built("longhaul"), "pair", "check", bed.pair.ground.config, check=False)
    assert done.returncode == 0, done.stdout
    assert "longhaul pair check" in done.stdout


def test_both_ends_log_why_a_handshake_failed(bed: PairBed, folder: Path) -> None:
    ground, remote = bed.pair.ground, bed.pair.remote
    own = {key: Path(bed.pair.identity[key]) for key in ("cert", "key")}
    before = {key: path.read_text() for key, path in own.items()}
    old = issue_as_written(folder / "old", authority(bed), REMOTE_NAME, starts_in_days=-60)
    try:
        replace(own["key"], old.key.read_text())
        replace(own["cert"], old.cert.read_text())
        wait_for("the renewal", lambda: "Envoy uses the renewed certificates" in remote.output(), timeout_s=30)
        bed.pair.remote.quit_envoy()
        reason = "it has expired by the clock of the ground"
        wait_for("the ground's reason", lambda: reason in ground.output(), timeout_s=30)
        wait_for("the remote's reason", lambda: "expired on" in remote.output(), timeout_s=60)
    finally:
        replace(own["key"], before["key"])
        replace(own["cert"], before["cert"])
    wait_for("the pair again", lambda: "the ground responds again" in remote.output(), timeout_s=60)
    # The log has one line a minute, however often the remote tries.
    assert ground.output().count(reason) <= 2


def test_a_ground_logs_why_a_stranger_is_refused_and_why_it_is_refused_itself(bed: PairBed, folder: Path) -> None:
    foreign = Authority(folder).files
    for shown, reason in (
        (issue_as_written(folder / "stranger", authority(bed), "stranger.example"), "it has no name that `split.peer`"),
        (issue_as_written(folder / "foreign", foreign, REMOTE_NAME), "no authority in `split.ca` of the ground"),
    ):
        assert not gets_in(bed, shown)
        wait_for(reason, lambda reason=reason: reason in bed.pair.ground.output(), timeout_s=20)
    code, said = pair_check(bed, issue_as_written(folder / "wary", foreign, REMOTE_NAME), foreign.cert)
    assert code == 1, said
    assert "refuses the certificate of the ground: no authority in `split.ca` of the remote" in said, said
    theirs = "refuses the certificate of this ground: no authority in `split.ca` of the remote"
    wait_for(theirs, lambda: theirs in bed.pair.ground.output(), timeout_s=20)
