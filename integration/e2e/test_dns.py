"""DNS responses to a client's resolver: the proxy first for listed names, the truth for all others."""

from __future__ import annotations

import pytest

from e2e.bed import TODAY, UNLISTED
from harness.boxes.bed import Bed
from harness.net.topology import leads_to_proxy


def test_a_listed_name_has_the_proxy_first_and_the_origin_after_it(bed: Bed) -> None:
    origin = bed.site.hosts["www.demo.test"]["address"]
    for _ in range(5):
        first, *others = bed.dig("www.demo.test", "A").addresses()
        assert (leads_to_proxy(first), others) == (True, [origin])


def test_servers_have_addresses_of_their_own(bed: Bed) -> None:
    www, img = (bed.dig(name, "A").addresses()[0] for name in ("www.demo.test", "img.demo.test"))
    assert leads_to_proxy(www)
    assert leads_to_proxy(img)
    assert www != img


def test_all_records_of_a_steered_answer_have_one_ttl(bed: Bed) -> None:
    ttls = {ttl for _, ttl, _, _ in bed.dig("img.demo.test", "A").answer}
    assert len(ttls) == 1
    assert 60 <= ttls.pop() <= 3600


@pytest.mark.parametrize("kind", ["AAAA", "HTTPS"])
def test_the_records_that_lead_past_the_proxy_do_exist(bed: Bed, kind: str) -> None:
    with bed.without_longhaul():
        assert bed.dig(TODAY, kind).answer


@pytest.mark.parametrize("kind", ["AAAA", "HTTPS"])
def test_a_listed_name_has_no_record_that_leads_past_the_proxy(bed: Bed, kind: str) -> None:
    answer = bed.dig(TODAY, kind)
    assert (answer.status, answer.answer) == ("NOERROR", [])
    assert [record for _, _, record, _ in answer.authority] == ["SOA"]


def test_a_name_not_on_the_list_is_untouched(bed: Bed) -> None:
    host = bed.site.hosts[UNLISTED]
    assert bed.dig(UNLISTED, "A").addresses() == [host["address"]]
    assert bed.dig(UNLISTED, "AAAA").addresses() == [host["aaaa"]]
    assert bed.dig("nobody.example.net", "A").status == "NXDOMAIN"


def test_a_listed_name_that_does_not_exist_still_does_not(bed: Bed) -> None:
    assert bed.dig("nobody.demo.test", "A").status == "NXDOMAIN"


def test_answers_over_tcp_are_steered_too(bed: Bed) -> None:
    assert leads_to_proxy(bed.dig("www.demo.test", "A", "+tcp").addresses()[0])


def test_the_proxy_s_own_lookups_are_not_steered(bed: Bed) -> None:
    # The page came from its origin. So the proxy resolved the name to the origin and not to itself.
    assert bed.curl.get("http://www.demo.test/about.html").status == 200
    assert bed.origins.requests(host="www.demo.test")


@pytest.mark.parametrize(
    ("name", "kind"), [("resolver.arpa", "SVCB"), ("use-application-dns.net", "A"), ("mask.icloud.com", "HTTPS")]
)
def test_clients_are_not_led_to_another_resolver(bed: Bed, name: str, kind: str) -> None:
    answer = bed.dig(name, kind)
    assert (answer.status, answer.answer) == ("NOERROR", []), answer
    assert [record for _, _, record, _ in answer.authority] == ["SOA"], answer
