"""The simulated experiments: more damage needs more parity, and links that visitors prefer are worth a prefetch."""

from __future__ import annotations

import pytest

from experiments.specials import error_correction, linked_pages
from harness.lab.links import link

GPRS, GEO = link("gprs"), link("geo")


def best_parity(damaged: float) -> float:
    return error_correction.best(error_correction.sweep(GPRS, lambda _: damaged, seed=1)).parity_share


def test_the_share_of_lost_codewords_falls_with_each_byte_that_parity_corrects() -> None:
    lost = [error_correction.lost_share(0.009, correctable) for correctable in range(8)]
    assert lost == sorted(lost, reverse=True)
    assert lost[0] == pytest.approx(1 - 0.991**255)
    assert error_correction.lost_share(0.0, 0) == 0


def test_the_best_parity_follows_the_channel() -> None:
    assert best_parity(0.0) == 0
    assert 0.03 <= best_parity(error_correction.POOR) <= 0.07
    assert 0 < best_parity(error_correction.GOOD) < best_parity(error_correction.POOR)


def test_a_channel_without_damage_carries_a_page_at_the_link_s_rate() -> None:
    least = error_correction.best(error_correction.sweep(GPRS, lambda _: 0.0, seed=1))
    assert least.mean_ms == pytest.approx(error_correction.PAGE_BYTES / GPRS.payload_bytes_per_ms, rel=0.01)


def test_prefetching_gains_where_visitors_prefer_a_link_and_next_to_nothing_where_they_do_not() -> None:
    alike, preferred = linked_pages.simulate(0.0, 1), linked_pages.simulate(2.0, 1)
    assert alike.ready / alike.pages < 0.01
    assert preferred.ready / preferred.pages > 0.3
    assert preferred.sent >= preferred.ready
    assert linked_pages.saved_ms(GEO, preferred) > 20 * linked_pages.saved_ms(GEO, alike)
