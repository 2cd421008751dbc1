package steer

import (
	"go/build"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"example.org/longhaul/coredns-plugin/internal/rrtext"

	"github.com/miekg/dns"
)

// TestThePolicyLooksAtMessagesAlone: a policy that could ask another plugin or the network would be hard to follow, and its
// tests would need both.
func TestThePolicyLooksAtMessagesAlone(t *testing.T) {
	pkg, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pkg.Imports {
		if strings.Contains(path, ".") && path != "github.com/miekg/dns" || path == "context" || path == "os" || path == "time" {
			t.Errorf("Package steer imports %s", path)
		}
	}
}

func TestTheOtherFamilyMattersOnlyWhereRecordsWouldBeTakenAway(t *testing.T) {
	both := &Addresses{V4: []netip.Addr{netip.MustParseAddr("198.51.100.12")}, V6: []netip.Addr{netip.MustParseAddr("2001:db8::12")}}
	v4, v6 := &Addresses{V4: both.V4}, &Addresses{V6: both.V6}
	for _, tc := range []struct {
		name    string
		policy  Policy
		proxies *Addresses
		record  string
		want    uint16
	}{
		{"A with an address to place", Policy{}, v4, "A 203.0.113.1", 0},
		{"A without one", Policy{}, v6, "A 203.0.113.1", 0},
		{"AAAA with an address to place", Policy{}, both, "AAAA 2001:db8:1::1", 0},
		{"AAAA without one", Policy{}, v4, "AAAA 2001:db8:1::1", dns.TypeA},
		{"AAAA that passes", Policy{PassAAAA: true}, v4, "AAAA 2001:db8:1::1", 0},
		{"HTTPS", Policy{}, both, "HTTPS 1 . alpn=h2", dns.TypeA},
		{"HTTPS before a proxy without IPv4", Policy{}, v6, "HTTPS 1 . alpn=h2", dns.TypeAAAA},
		{"HTTPS that passes", Policy{HTTPS: HTTPSPass}, both, "HTTPS 1 . alpn=h2", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			query, response := exchange(tc.record)
			if got := tc.policy.OtherQuery(query, response, tc.proxies); got != tc.want {
				t.Errorf("Other query is for type %d", got)
			}
			answer, verdict := tc.policy.Answer(query, response, nil, tc.proxies)
			if failed := verdict == LeftError; failed != (tc.want != 0) {
				t.Errorf("Without the other response the verdict is %s", verdict)
			}
			if changed := answer != response; changed != (verdict == Steered) {
				t.Errorf("Verdict %s, changed %t", verdict, changed)
			}
		})
	}
}

func TestSteersAgreesWithAnswer(t *testing.T) {
	policy := Policy{MaxOrigin: 1, TTL: TTL{Min: 60, Max: 3600}}
	proxies := &Addresses{V4: []netip.Addr{netip.MustParseAddr("198.51.100.12")}}
	for _, record := range []string{"A 203.0.113.1", "A 10.0.0.1", "A 198.51.100.12", "TXT x"} {
		query, response := exchange(record)
		query = query.of(dns.TypeA)
		answer, verdict := policy.Answer(query, response, nil, proxies)
		ttl, said := policy.Steers(query, response, proxies)
		if said != verdict {
			t.Errorf("%s: Steers gives %s, Answer %s", record, said, verdict)
		}
		if verdict == Steered && slices.ContainsFunc(answer.Answer, func(rr dns.RR) bool { return rr.Header().Ttl != ttl }) {
			t.Errorf("%s: Steers gives a TTL of %d, Answer\n%s", record, ttl, answer)
		}
	}
}

// exchange is a query for one record and the response that holds it.
func exchange(record string) (Query, *dns.Msg) {
	response := new(dns.Msg)
	response.Answer = rrtext.Parse("www.example.org. 300 IN " + record)
	r := new(dns.Msg).SetQuestion("www.example.org.", response.Answer[0].Header().Rrtype)
	answer := response.Answer
	response.SetReply(r)
	response.Answer = answer
	return Query{Msg: r, Question: r.Question[0], Size: dns.MaxMsgSize}, response
}
