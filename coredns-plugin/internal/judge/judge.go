// Package judge decides which responses are kept, and for how long. Both ends of a pair decide so: a remote for its memory, and a
// ground for what it believes that a remote has.
package judge

import (
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/response"

	"github.com/miekg/dns"
)

// The bounds of the time for which a response is fresh are those of the stock cache.
const (
	leastTTL  = dnsutil.MinimalDefaultTTL
	mostTTL   = time.Hour
	mostNoTTL = 30 * time.Minute
	// StaleTTL is the TTL of a stale response (RFC 8767 section 4).
	StaleTTL = 30 * time.Second
)

// Fate is the decision about a response.
type Fate int

const (
	// Pass: it says nothing about the name (a failure), or cannot be kept. An earlier response stays.
	Pass Fate = iota
	// Forget: it says that an earlier response is not true any more, but has no TTL to be kept for.
	Forget
	// Keep: the records are there. They may be served stale.
	Keep
	// KeepDenial: there is no such name or record. It is never served beyond its TTL.
	KeepDenial
)

// Of returns the decision about a response, and for how long it is fresh.
func Of(m *dns.Msg, now time.Time) (Fate, time.Duration) {
	kind, _ := response.Typify(m, now)
	switch {
	case m.Truncated || len(m.Question) != 1:
		return Pass, 0
	case kind == response.NoError && Answers(m):
		return Keep, min(max(dnsutil.MinimalTTLWithMaximum(m, kind, mostTTL), leastTTL), mostTTL)
	case kind == response.NameError, kind == response.NoData, kind == response.NoError:
		if kind == response.NoError && len(m.Answer) > 0 {
			// A CNAME, and none of the records at its end.
			kind = response.NoData
		}
		most, ok := denialTTL(m)
		if ttl := min(most, dnsutil.MinimalTTLWithMaximum(m, kind, mostNoTTL)); ok && ttl > 0 {
			return KeepDenial, ttl
		}
		return Forget, 0
	default:
		return Pass, 0
	}
}

// denialTTL returns the longest time for which a denial holds, by its SOA (RFC 2308 section 5). Without one, it has no TTL.
func denialTTL(m *dns.Msg) (time.Duration, bool) {
	for _, rr := range m.Ns {
		if soa, ok := rr.(*dns.SOA); ok {
			return time.Duration(soa.Minttl) * time.Second, true
		}
	}
	return 0, false
}

// Answers returns true if a record of the type in the question stands at the end of the chain of CNAMEs.
func Answers(m *dns.Msg) bool {
	chain := Chain(m)
	return len(chain) > 0 && chain[len(chain)-1].Header().Rrtype == m.Question[0].Qtype
}

// Chain returns the records that say something about the name in the question: the CNAMEs that lead from it, and the records
// of the type in the question at their end.
func Chain(m *dns.Msg) []dns.RR {
	question := m.Question[0]
	name := question.Name
	var chain []dns.RR
	// A chain is not longer than the answer, else it is a circle.
	for range len(m.Answer) + 1 {
		var target *dns.CNAME
		found := false
		for _, rr := range m.Answer {
			if !strings.EqualFold(rr.Header().Name, name) || rr.Header().Class != question.Qclass {
				continue
			}
			if rr.Header().Rrtype == question.Qtype {
				chain, found = append(chain, rr), true
			} else if cname, ok := rr.(*dns.CNAME); ok {
				target = cname
			}
		}
		if found || target == nil {
			return chain
		}
		chain, name = append(chain, target), target.Target
	}
	return chain
}

// SignedUntil returns when the first signature of a response ends, at most limit. A client that validates refuses the
// response from then on.
func SignedUntil(m *dns.Msg, now, limit time.Time) time.Time {
	for _, section := range [][]dns.RR{m.Answer, m.Ns} {
		for _, rr := range section {
			if sig, ok := rr.(*dns.RRSIG); ok {
				// Serial number arithmetic (RFC 4034 section 3.1.5).
				left := time.Duration(int32(sig.Expiration-uint32(now.Unix()))) * time.Second
				if end := now.Add(left); end.Before(limit) {
					limit = end
				}
			}
		}
	}
	return limit
}
