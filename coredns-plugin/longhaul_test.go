package longhaul

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/test"

	"example.org/longhaul/coredns-plugin/internal/rrtext"
	"example.org/longhaul/coredns-plugin/steer"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// newPlugin makes a handler from the block of a Corefile, in front of next.
func newPlugin(t testing.TB, corefile string, next plugin.Handler) *Longhaul {
	t.Helper()
	l, err := parse(caddy.NewTestController("dns", corefile))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.lists.load(); err != nil {
		t.Fatal(err)
	}
	l.Next = next
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	l.proxy.start(ctx, &running)
	t.Cleanup(func() { stop(); running.Wait() })
	return l
}

// truth is a handler that answers from records: those of the type asked for and the CNAMEs before them.
type truth struct {
	answers map[string]string // type -> records, one a line
	ns      string
	extra   string
	rcode   int
	header  dns.MsgHdr // flags to set
}

func (truth) Name() string { return "truth" }

func (u truth) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg)
	m.SetReply(r)
	m.Authoritative, m.AuthenticatedData, m.Truncated = u.header.Authoritative, u.header.AuthenticatedData, u.header.Truncated
	m.Rcode = u.rcode
	m.Answer = parseRecords(u.answers[dns.TypeToString[r.Question[0].Qtype]])
	m.Ns = parseRecords(u.ns)
	m.Extra = parseRecords(u.extra)
	return dns.RcodeSuccess, w.WriteMsg(m)
}

var parseRecords, words, tidy = rrtext.Parse, rrtext.Words, rrtext.Tidy

// ask sends one query through l and returns what the client would get.
func ask(t testing.TB, l *Longhaul, r *dns.Msg, w dns.ResponseWriter) *dns.Msg {
	t.Helper()
	rec := dnstest.NewRecorder(w)
	if _, err := l.ServeDNS(t.Context(), rec, r); err != nil {
		t.Fatal(err)
	}
	return rec.Msg
}

const (
	signature = "example.org. 300 IN RRSIG A 13 2 300 20300101000000 20200101000000 1 example.org. c2lnbmF0dXJl"

	signedA = "www.example.org. 300 IN A 203.0.113.1\n" + "www.example.org. 300 IN RRSIG A 13 3 300 20300101000000 20200101000000 1 example.org. c2lnbmF0dXJl"
)

// TestBehaviourTable is the table of the README, line by line, with what each property changes in it. Answers are compared
// by position: the order is what the plugin is for.
func TestBehaviourTable(t *testing.T) {
	const oneA = "www.example.org. 300 IN A 203.0.113.1"
	const oneAAAA = "www.example.org. 300 IN AAAA 2001:db8:1::1"
	const oneHTTPS = "www.example.org. 300 IN HTTPS 1 . alpn=h2,h3 ipv4hint=203.0.113.1 ech=AAAA"
	const soa = "www.example.org. 300 IN SOA longhaul.invalid. nobody.invalid. 1 3600 1200 604800 300"
	const steeredA = "www.example.org. 300 IN A 198.51.100.12\n" + oneA

	for _, tc := range []struct {
		name   string
		config string // added to the block
		qtype  string
		qname  string // www.example.org. if empty
		do, cd bool
		truth  truth
		answer string // "truth" for the whole message as it was
		ns     string
		what   steer.Verdict // counted
	}{
		{name: "A gets the proxy first and the origin behind it", qtype: "A",
			truth: truth{answers: map[string]string{"A": oneA}}, answer: steeredA, what: steer.Steered},
		{name: "addresses behind the proxy keep their order and stop at max_origin", qtype: "A", config: "max_origin 2",
			truth: truth{answers: map[string]string{"A": `
				www.example.org. 300 IN A 203.0.113.3
				www.example.org. 300 IN A 203.0.113.1
				www.example.org. 300 IN A 203.0.113.2`}},
			answer: `
				www.example.org. 300 IN A 198.51.100.12
				www.example.org. 300 IN A 203.0.113.3
				www.example.org. 300 IN A 203.0.113.1`, what: steer.Steered},
		{name: "four origin addresses are kept by default", qtype: "A",
			truth: truth{answers: map[string]string{"A": `
				www.example.org. 300 IN A 203.0.113.1
				www.example.org. 300 IN A 203.0.113.2
				www.example.org. 300 IN A 203.0.113.3
				www.example.org. 300 IN A 203.0.113.4
				www.example.org. 300 IN A 203.0.113.5`}},
			answer: `
				www.example.org. 300 IN A 198.51.100.12
				www.example.org. 300 IN A 203.0.113.1
				www.example.org. 300 IN A 203.0.113.2
				www.example.org. 300 IN A 203.0.113.3
				www.example.org. 300 IN A 203.0.113.4`, what: steer.Steered},
		{name: "several proxies stand in the order given", qtype: "A", config: "proxy 198.51.100.9",
			truth:  truth{answers: map[string]string{"A": oneA}},
			answer: "www.example.org. 300 IN A 198.51.100.12\nwww.example.org. 300 IN A 198.51.100.9\n" + oneA, what: steer.Steered},
		{name: "mode replace leaves the origin out for 30 seconds", qtype: "A", config: "mode replace",
			truth:  truth{answers: map[string]string{"A": oneA}},
			answer: "www.example.org. 30 IN A 198.51.100.12", what: steer.Steered},
		{name: "mode replace with a TTL of its own", qtype: "A", config: "mode replace\nttl 60s 5m",
			truth:  truth{answers: map[string]string{"A": oneA}},
			answer: "www.example.org. 300 IN A 198.51.100.12", what: steer.Steered},
		{name: "a CNAME chain stays in front, the records belong to its end", qtype: "A",
			truth: truth{answers: map[string]string{"A": `
				www.example.org. 600 IN CNAME a.CDN.example.net.
				A.cdn.example.net. 200 IN CNAME b.cdn.example.net.
				B.cdn.example.net. 500 IN A 203.0.113.1`}},
			answer: `
				www.example.org. 200 IN CNAME a.CDN.example.net.
				A.cdn.example.net. 200 IN CNAME b.cdn.example.net.
				B.cdn.example.net. 200 IN A 198.51.100.12
				B.cdn.example.net. 200 IN A 203.0.113.1`, what: steer.Steered},
		{name: "flatten leaves the chain out", qtype: "A", config: "flatten",
			truth: truth{answers: map[string]string{"A": `
				www.example.org. 600 IN CNAME cdn.example.net.
				cdn.example.net. 200 IN A 203.0.113.1`}},
			answer: `
				www.example.org. 200 IN A 198.51.100.12
				www.example.org. 200 IN A 203.0.113.1`, what: steer.Steered},
		{name: "flatten leaves the chain out of no data, too", qtype: "AAAA", config: "flatten",
			truth: truth{answers: map[string]string{
				"A":    "www.example.org. 600 IN CNAME cdn.example.net.\ncdn.example.net. 300 IN A 203.0.113.1",
				"AAAA": "www.example.org. 600 IN CNAME cdn.example.net.\ncdn.example.net. 300 IN AAAA 2001:db8:1::1"}},
			answer: "", ns: soa, what: steer.Suppressed},
		{name: "flatten changes nothing where there is no chain", qtype: "A", config: "flatten",
			truth: truth{answers: map[string]string{"A": oneA}}, answer: steeredA, what: steer.Steered},
		{name: "a DNAME stays in front", qtype: "A",
			truth: truth{answers: map[string]string{"A": `
				example.org. 300 IN DNAME example.net.
				www.example.org. 300 IN CNAME www.example.net.
				www.example.net. 300 IN A 203.0.113.1`}},
			answer: `
				example.org. 300 IN DNAME example.net.
				www.example.org. 300 IN CNAME www.example.net.
				www.example.net. 300 IN A 198.51.100.12
				www.example.net. 300 IN A 203.0.113.1`, what: steer.Steered},
		{name: "the proxy's address is moved to the front, not repeated", qtype: "A",
			truth:  truth{answers: map[string]string{"A": oneA + "\nwww.example.org. 300 IN A 198.51.100.12"}},
			answer: steeredA, what: steer.Steered},
		{name: "a repeated origin address is given once", qtype: "A",
			truth:  truth{answers: map[string]string{"A": oneA + "\n" + oneA}},
			answer: steeredA, what: steer.Steered},
		{name: "a short TTL is raised to a minute", qtype: "A",
			truth:  truth{answers: map[string]string{"A": "www.example.org. 0 IN A 203.0.113.1"}},
			answer: "www.example.org. 60 IN A 198.51.100.12\nwww.example.org. 60 IN A 203.0.113.1", what: steer.Steered},
		{name: "a long TTL is lowered to an hour", qtype: "A",
			truth:  truth{answers: map[string]string{"A": "www.example.org. 86400 IN A 203.0.113.1"}},
			answer: "www.example.org. 3600 IN A 198.51.100.12\nwww.example.org. 3600 IN A 203.0.113.1", what: steer.Steered},
		{name: "the lowest of several TTLs counts for all", qtype: "A",
			truth:  truth{answers: map[string]string{"A": "www.example.org. 900 IN A 203.0.113.1\nwww.example.org. 90 IN A 203.0.113.2"}},
			answer: "www.example.org. 90 IN A 198.51.100.12\nwww.example.org. 90 IN A 203.0.113.1\nwww.example.org. 90 IN A 203.0.113.2", what: steer.Steered},
		{name: "a fixed TTL is the TTL", qtype: "A", config: "ttl 45s",
			truth:  truth{answers: map[string]string{"A": oneA}},
			answer: "www.example.org. 45 IN A 198.51.100.12\nwww.example.org. 45 IN A 203.0.113.1", what: steer.Steered},
		{name: "name servers, glue, AA and AD go", qtype: "A",
			truth: truth{answers: map[string]string{"A": oneA}, ns: "example.org. 300 IN NS ns.example.org.", extra: "ns.example.org. 300 IN A 203.0.113.53",
				header: dns.MsgHdr{Authoritative: true, AuthenticatedData: true}},
			answer: steeredA, what: steer.Steered},

		{name: "an unsigned answer is steered although DO is set", qtype: "A", do: true,
			truth: truth{answers: map[string]string{"A": oneA}}, answer: steeredA, what: steer.Steered},
		{name: "a signed answer passes when DO is set", qtype: "A", do: true,
			truth: truth{answers: map[string]string{"A": signedA}, header: dns.MsgHdr{AuthenticatedData: true}}, answer: "truth", what: steer.LeftDNSSEC},
		{name: "a signed answer is steered without its signatures when DO is not set", qtype: "A",
			truth: truth{answers: map[string]string{"A": signedA}}, answer: steeredA, what: steer.Steered},
		{name: "a signed link of the chain is enough to pass", qtype: "A", do: true,
			truth:  truth{answers: map[string]string{"A": "www.example.org. 300 IN CNAME w.example.net.\n" + strings.Replace(signature, " A ", " CNAME ", 1) + "\nw.example.net. 300 IN A 203.0.113.1"}},
			answer: "truth", what: steer.LeftDNSSEC},
		{name: "any answer passes when CD is set", qtype: "A", cd: true,
			truth: truth{answers: map[string]string{"A": oneA}}, answer: "truth", what: steer.LeftDNSSEC},
		{name: "dnssec signed steers unsigned answers although CD is set", qtype: "A", do: true, cd: true, config: "dnssec signed",
			truth: truth{answers: map[string]string{"A": oneA}}, answer: steeredA, what: steer.Steered},
		{name: "dnssec signed leaves signed answers alone", qtype: "A", do: true, cd: true, config: "dnssec signed",
			truth: truth{answers: map[string]string{"A": signedA}}, answer: "truth", what: steer.LeftDNSSEC},
		{name: "dnssec break drops the signatures", qtype: "A", do: true, cd: true, config: "dnssec break",
			truth: truth{answers: map[string]string{"A": signedA}}, answer: steeredA, what: steer.Steered},
		{name: "AAAA of a signed name passes when DO is set", qtype: "AAAA", do: true,
			truth:  truth{answers: map[string]string{"A": oneA, "AAAA": oneAAAA + "\n" + strings.Replace(signature, " A ", " AAAA ", 1)}},
			answer: "truth", what: steer.LeftDNSSEC},
		{name: "AAAA passes when CD is set", qtype: "AAAA", cd: true,
			truth: truth{answers: map[string]string{"A": oneA, "AAAA": oneAAAA}}, answer: "truth", what: steer.LeftDNSSEC},

		{name: "private addresses pass", qtype: "A",
			truth: truth{answers: map[string]string{"A": "www.example.org. 300 IN A 10.1.2.3\nwww.example.org. 300 IN A 127.0.0.1"}}, answer: "truth", what: steer.LeftPrivate},
		{name: "a sinkhole's address passes", qtype: "A",
			truth: truth{answers: map[string]string{"A": "www.example.org. 300 IN A 0.0.0.0"}}, answer: "truth", what: steer.LeftPrivate},
		{name: "carrier-grade NAT addresses pass", qtype: "A",
			truth: truth{answers: map[string]string{"A": "www.example.org. 300 IN A 100.64.0.1"}}, answer: "truth", what: steer.LeftPrivate},
		{name: "the proxy's own address alone passes", qtype: "A",
			truth: truth{answers: map[string]string{"A": "www.example.org. 300 IN A 198.51.100.12"}}, answer: "truth", what: steer.LeftPrivate},
		{name: "one public address among private ones is enough to steer", qtype: "A",
			truth:  truth{answers: map[string]string{"A": "www.example.org. 300 IN A 10.1.2.3\n" + oneA}},
			answer: "www.example.org. 300 IN A 198.51.100.12\nwww.example.org. 300 IN A 10.1.2.3\n" + oneA, what: steer.Steered},
		{name: "allowed private addresses count as public", qtype: "A", config: "allow_private 10.1.0.0/16",
			truth:  truth{answers: map[string]string{"A": "www.example.org. 300 IN A 10.1.2.3"}},
			answer: "www.example.org. 300 IN A 198.51.100.12\nwww.example.org. 300 IN A 10.1.2.3", what: steer.Steered},
		{name: "other private addresses still pass", qtype: "A", config: "allow_private 10.1.0.0/16",
			truth: truth{answers: map[string]string{"A": "www.example.org. 300 IN A 10.2.2.3"}}, answer: "truth", what: steer.LeftPrivate},

		{name: "NXDOMAIN passes", qtype: "A", truth: truth{rcode: dns.RcodeNameError, ns: soa}, answer: "truth", what: steer.LeftError},
		{name: "SERVFAIL passes", qtype: "A", truth: truth{rcode: dns.RcodeServerFailure}, answer: "truth", what: steer.LeftError},
		{name: "REFUSED passes", qtype: "A", truth: truth{rcode: dns.RcodeRefused}, answer: "truth", what: steer.LeftError},
		{name: "NXDOMAIN at the end of a chain passes", qtype: "A",
			truth: truth{rcode: dns.RcodeNameError, answers: map[string]string{"A": "www.example.org. 300 IN CNAME gone.example.net."}}, answer: "truth", what: steer.LeftError},
		{name: "no data passes", qtype: "A", truth: truth{ns: soa}, answer: "truth", what: steer.LeftEmpty},
		{name: "a truncated answer passes", qtype: "A",
			truth: truth{answers: map[string]string{"A": oneA}, header: dns.MsgHdr{Truncated: true}}, answer: "truth", what: steer.LeftTruncated},
		{name: "an answer about another name passes", qtype: "A",
			truth: truth{answers: map[string]string{"A": "other.example.org. 300 IN A 203.0.113.1"}}, answer: "truth", what: steer.LeftMalformed},
		{name: "addresses of two names pass", qtype: "A",
			truth: truth{answers: map[string]string{"A": oneA + "\nother.example.org. 300 IN A 203.0.113.2"}}, answer: "truth", what: steer.LeftMalformed},
		{name: "a chain after its addresses passes", qtype: "A",
			truth: truth{answers: map[string]string{"A": "w.example.net. 300 IN A 203.0.113.1\nwww.example.org. 300 IN CNAME w.example.net."}}, answer: "truth", what: steer.LeftMalformed},
		{name: "records of other types among the addresses pass", qtype: "A",
			truth: truth{answers: map[string]string{"A": oneA + "\nwww.example.org. 300 IN TXT \"x\""}}, answer: "truth", what: steer.LeftMalformed},

		{name: "AAAA becomes no data where A is steered", qtype: "AAAA",
			truth:  truth{answers: map[string]string{"A": oneA, "AAAA": oneAAAA}, ns: "example.org. 300 IN NS ns.example.org.", header: dns.MsgHdr{Authoritative: true, AuthenticatedData: true}},
			answer: "", ns: soa, what: steer.Suppressed},
		{name: "no data keeps the chain and belongs to its end", qtype: "AAAA",
			truth: truth{answers: map[string]string{
				"A":    "www.example.org. 300 IN CNAME w.example.net.\nw.example.net. 60 IN A 203.0.113.1",
				"AAAA": "www.example.org. 300 IN CNAME w.example.net.\nw.example.net. 900 IN AAAA 2001:db8:1::1"}},
			answer: "www.example.org. 60 IN CNAME w.example.net.",
			ns:     "w.example.net. 60 IN SOA longhaul.invalid. nobody.invalid. 1 3600 1200 604800 60", what: steer.Suppressed},
		{name: "AAAA of a name without A passes", qtype: "AAAA",
			truth: truth{answers: map[string]string{"AAAA": oneAAAA}}, answer: "truth", what: steer.LeftEmpty},
		{name: "AAAA of a name with a private A passes", qtype: "AAAA",
			truth: truth{answers: map[string]string{"A": "www.example.org. 300 IN A 10.0.0.1", "AAAA": oneAAAA}}, answer: "truth", what: steer.LeftPrivate},
		{name: "AAAA that is no data already passes", qtype: "AAAA",
			truth: truth{answers: map[string]string{"A": oneA}, ns: soa}, answer: "truth", what: steer.LeftEmpty},
		{name: "AAAA passes with aaaa pass", qtype: "AAAA", config: "aaaa pass",
			truth: truth{answers: map[string]string{"A": oneA, "AAAA": oneAAAA}}, answer: "truth", what: steer.Kept},
		{name: "AAAA is steered to an IPv6 proxy", qtype: "AAAA", config: "proxy 2001:db8::12",
			truth:  truth{answers: map[string]string{"AAAA": oneAAAA}},
			answer: "www.example.org. 300 IN AAAA 2001:db8::12\n" + oneAAAA, what: steer.Steered},
		{name: "A is steered beside an IPv6 proxy", qtype: "A", config: "proxy 2001:db8::12",
			truth: truth{answers: map[string]string{"A": oneA}}, answer: steeredA, what: steer.Steered},
		{name: "unique local IPv6 addresses pass", qtype: "AAAA", config: "proxy 2001:db8::12",
			truth: truth{answers: map[string]string{"AAAA": "www.example.org. 300 IN AAAA fd00::1"}}, answer: "truth", what: steer.LeftPrivate},

		{name: "HTTPS becomes no data", qtype: "HTTPS",
			truth: truth{answers: map[string]string{"A": oneA, "HTTPS": oneHTTPS}}, answer: "", ns: soa, what: steer.Suppressed},
		{name: "HTTPS of a name that is not steered passes", qtype: "HTTPS",
			truth: truth{answers: map[string]string{"A": "www.example.org. 300 IN A 10.0.0.1", "HTTPS": oneHTTPS}}, answer: "truth", what: steer.LeftPrivate},
		{name: "HTTPS is stripped of hints, ECH and HTTP/3", qtype: "HTTPS", config: "https strip",
			truth:  truth{answers: map[string]string{"A": oneA, "HTTPS": oneHTTPS}},
			answer: "www.example.org. 300 IN HTTPS 1 . alpn=h2", what: steer.Stripped},
		{name: "HTTPS passes with https pass", qtype: "HTTPS", config: "https pass",
			truth: truth{answers: map[string]string{"A": oneA, "HTTPS": oneHTTPS}}, answer: "truth", what: steer.Kept},
		{name: "SVCB passes", qtype: "SVCB",
			truth: truth{answers: map[string]string{"A": oneA, "SVCB": "www.example.org. 300 IN SVCB 1 . ipv4hint=203.0.113.1"}}, answer: "truth"},
		{name: "MX passes", qtype: "MX", truth: truth{answers: map[string]string{"MX": "www.example.org. 300 IN MX 10 mail.example.org."}}, answer: "truth"},
		{name: "TXT passes", qtype: "TXT", truth: truth{answers: map[string]string{"TXT": `www.example.org. 300 IN TXT "v=spf1 -all"`}}, answer: "truth"},
		{name: "ANY passes", qtype: "ANY", truth: truth{answers: map[string]string{"ANY": oneA}}, answer: "truth"},

		{name: "a name that is not listed passes", qtype: "A", qname: "www.example.com.",
			truth: truth{answers: map[string]string{"A": "www.example.com. 300 IN A 203.0.113.1"}}, answer: "truth"},
		{name: "a name that is listed by its CNAME's target only passes", qtype: "A", qname: "alias.example.com.",
			truth: truth{answers: map[string]string{"A": "alias.example.com. 300 IN CNAME www.example.org.\n" + oneA}}, answer: "truth"},
		{name: "the case of the question does not matter", qtype: "A", qname: "wWw.eXample.ORG.",
			truth:  truth{answers: map[string]string{"A": oneA}},
			answer: "www.example.org. 300 IN A 198.51.100.12\n" + oneA, what: steer.Steered},
		{name: "an excepted name passes", qtype: "A", config: "except www.example.org",
			truth: truth{answers: map[string]string{"A": oneA}}, answer: "truth", what: steer.LeftExcept},
		{name: "an exception wins over a longer listed name", qtype: "A", config: "except org\nmatch =www.example.org",
			truth: truth{answers: map[string]string{"A": oneA}}, answer: "truth", what: steer.LeftExcept},
		{name: "an exact exception leaves names below it steered", qtype: "A", config: "except =example.org",
			truth: truth{answers: map[string]string{"A": oneA}}, answer: steeredA, what: steer.Steered},
		{name: "a client in bypass gets the truth", qtype: "A", config: "bypass 10.240.0.0/24",
			truth: truth{answers: map[string]string{"A": oneA}}, answer: "truth", what: steer.LeftClient},
		{name: "a client outside of bypass is steered", qtype: "A", config: "bypass 10.241.0.0/24 2001:db8::/32",
			truth: truth{answers: map[string]string{"A": oneA}}, answer: steeredA, what: steer.Steered},
		{name: "www steers names that are not listed", qtype: "A", config: "www", qname: "www.example.com.",
			truth:  truth{answers: map[string]string{"A": "www.example.com. 300 IN A 203.0.113.1"}},
			answer: "www.example.com. 300 IN A 198.51.100.12\nwww.example.com. 300 IN A 203.0.113.1", what: steer.Steered},
		{name: "www leaves other names alone", qtype: "A", config: "www", qname: "wwwa.example.com.",
			truth: truth{answers: map[string]string{"A": "wwwa.example.com. 300 IN A 203.0.113.1"}}, answer: "truth"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			next := &unchanged{t: t, next: tc.truth}
			l := newPlugin(t, "longhaul {\nproxy 198.51.100.12\nmatch example.org\n"+tc.config+"\n}", next)
			r := new(dns.Msg)
			if tc.qname == "" {
				tc.qname = "www.example.org."
			}
			r.SetQuestion(tc.qname, dns.StringToType[tc.qtype])
			r.CheckingDisabled = tc.cd
			if tc.do {
				r.SetEdns0(1232, true)
			}
			before := total(l)
			m := ask(t, l, r, &test.ResponseWriter{})

			truthful := tc.answer == "truth"
			answer, ns := tc.answer, tc.ns
			if truthful {
				answer, ns = tc.truth.answers[tc.qtype], tc.truth.ns
			}
			if got, want := words(m.Answer), tidy(answer); got != want {
				t.Errorf("Answer is\n%s\nwant\n%s", got, want)
			}
			if got, want := words(m.Ns), tidy(ns); got != want {
				t.Errorf("Authority is\n%s\nwant\n%s", got, want)
			}
			if changed := m != next.given[0]; changed == truthful {
				t.Errorf("Message changed: %v", changed)
			}
			if !truthful && (m.AuthenticatedData || m.Authoritative || len(m.Extra) > 0) {
				t.Errorf("Changed answer has AD %v, AA %v, additional records %v", m.AuthenticatedData, m.Authoritative, m.Extra)
			}
			if m.Rcode != tc.truth.rcode {
				t.Errorf("Rcode is %d", m.Rcode)
			}
			after := total(l)
			for v := range steer.Verdicts {
				if counted := after[v] - before[v]; (counted == 1) != (v == tc.what && v != steer.Kept && v != 0) {
					t.Errorf("Counted %v as %q", counted, v)
				}
			}
			next.check()
		})
	}
}

// total reads the counters of the tests' server, which has no address.
func total(l *Longhaul) (sum [steer.Verdicts]float64) {
	c := l.counts.of("")
	for _, t := range []typeCounters{c.a, c.aaaa, c.http} {
		sum[steer.Suppressed] += testutil.ToFloat64(t.suppressed)
	}
	sum[steer.Steered] = testutil.ToFloat64(c.a.rewrites) + testutil.ToFloat64(c.aaaa.rewrites)
	sum[steer.Stripped] = testutil.ToFloat64(c.http.rewrites)
	for v := steer.LeftClient; v < steer.Verdicts; v++ {
		sum[v] = testutil.ToFloat64(c.skips[v])
	}
	return sum
}

// unchanged checks that what next answers is not changed by the plugin that gets it: a cache or a zone may own it.
type unchanged struct {
	t     testing.TB
	next  plugin.Handler
	given []*dns.Msg
	as    []string
}

func (u *unchanged) Name() string { return "unchanged" }

func (u *unchanged) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	c := nonwriter.New(w)
	rcode, err := u.next.ServeDNS(ctx, c, r)
	if c.Msg == nil {
		return rcode, err
	}
	// Room behind the records, as appending into it would be a change too.
	c.Msg.Answer = slices.Grow(c.Msg.Answer, 4)
	u.given = append(u.given, c.Msg)
	u.as = append(u.as, whole(c.Msg))
	if writeErr := w.WriteMsg(c.Msg); err == nil {
		err = writeErr
	}
	return rcode, err
}

func (u *unchanged) check() {
	u.t.Helper()
	for i, m := range u.given {
		if now := whole(m); now != u.as[i] {
			u.t.Errorf("Message of another plugin was changed from\n%s\nto\n%s", u.as[i], now)
		}
	}
}

// whole is m with what lies behind the end of its answer section.
func whole(m *dns.Msg) string {
	return m.String() + words(slices.DeleteFunc(slices.Clone(m.Answer[:cap(m.Answer)]), func(rr dns.RR) bool { return rr == nil }))
}
