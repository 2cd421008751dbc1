package steer

import (
	"net/netip"

	"github.com/miekg/dns"
)

// The responses of this file need no truth.

// syntheticTTL is the TTL of responses about the proxy's own names and about canaries, in seconds. They change only with the
// configuration.
const syntheticTTL = 300

// instantTTL is the TTL of responses before the truth is known, in seconds. A client believes this long in a name that does not
// exist.
const instantTTL = 10

// Instant responds to a query for a steered name before the truth is known. It returns nil where only the truth will do: for
// a client that may validate, and for types that pass.
func (p *Policy) Instant(query Query, proxies *Addresses) (*dns.Msg, Verdict) {
	qtype := query.Question.Qtype
	if p.MayValidate(query.Msg) || len(proxies.Of(qtype)) == 0 && (p.passes(qtype) || p.strips(qtype)) {
		return nil, 0
	}
	m := withRecords(query, proxies, instantTTL)
	if len(m.Answer) == 0 {
		return m, Suppressed
	}
	return m, Steered
}

// Meanwhile responds to a query for a name on no list before the truth is known, with an address for ttl seconds. Types that have
// no such address get "no data".
func Meanwhile(query Query, addr netip.Addr, ttl uint32) *dns.Msg {
	var own Addresses
	own.Add(addr)
	return withRecords(query, &own, ttl)
}

// strips reports whether queries of this type get the records of the truth, which Instant does not know.
func (p *Policy) strips(qtype uint16) bool { return qtype == dns.TypeHTTPS && p.HTTPS == HTTPSStrip }

// OwnName responds to an A, AAAA or HTTPS query for one of the proxy's own names. The HTTPS record announces alpn; without
// any there is no such record.
func OwnName(query Query, proxies *Addresses, alpn []string) *dns.Msg {
	if query.Question.Qtype != dns.TypeHTTPS || len(alpn) == 0 {
		return withRecords(query, proxies, syntheticTTL)
	}
	m := replyTo(query)
	m.Answer = []dns.RR{&dns.HTTPS{SVCB: dns.SVCB{
		Hdr:      header(query.Question.Name, dns.TypeHTTPS, syntheticTTL),
		Priority: 1, Target: ".",
		Value: []dns.SVCBKeyValue{&dns.SVCBAlpn{Alpn: alpn}},
	}}}
	return m
}

// Canary responds "no data".
func Canary(query Query) *dns.Msg { return withRecords(query, &Addresses{}, syntheticTTL) }

// withRecords responds with the proxy's addresses of the query's type, or "no data" if it has none.
func withRecords(query Query, proxies *Addresses, ttl uint32) *dns.Msg {
	m := replyTo(query)
	m.Answer = appendRecords(nil, query.Question.Name, proxies.Of(query.Question.Qtype), ttl)
	if len(m.Answer) == 0 {
		m.Ns = []dns.RR{soaFor(query.Question.Name, ttl)}
	}
	return m
}

func replyTo(query Query) *dns.Msg {
	m := new(dns.Msg).SetReply(query.Msg)
	m.RecursionAvailable = true // other types of the same name are resolved
	return m
}
