package remember

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
	// staleTTL is the TTL of a stale response (RFC 8767 section 4).
	staleTTL = 30 * time.Second
)

// fate is what becomes of a response.
type fate int

const (
	// pass: it says nothing about the name (a failure), or cannot be kept. An earlier response stays.
	pass fate = iota
	// forget: it says that an earlier response is not true any more, but has no TTL to be kept for.
	forget
	// keep: the records are there. They may be served stale.
	keep
	// keepDenial: there is no such name or record. It is never served beyond its TTL.
	keepDenial
)

// judge decides what becomes of a response, and for how long it is fresh.
func judge(m *dns.Msg, now time.Time) (fate, time.Duration) {
	kind, _ := response.Typify(m, now)
	switch {
	case m.Truncated || len(m.Question) != 1:
		return pass, 0
	case kind == response.NoError && answers(m):
		return keep, min(max(dnsutil.MinimalTTLWithMaximum(m, kind, mostTTL), leastTTL), mostTTL)
	case kind == response.NameError, kind == response.NoData, kind == response.NoError:
		if kind == response.NoError && len(m.Answer) > 0 {
			// A CNAME, and none of the records at its end.
			kind = response.NoData
		}
		most, ok := denialTTL(m)
		if ttl := min(most, dnsutil.MinimalTTLWithMaximum(m, kind, mostNoTTL)); ok && ttl > 0 {
			return keepDenial, ttl
		}
		return forget, 0
	default:
		return pass, 0
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

// answers returns true if a record of the type in the question stands at the end of the chain of CNAMEs.
func answers(m *dns.Msg) bool {
	question := m.Question[0]
	name := question.Name
	// A chain is not longer than the answer, else it is a circle.
	for range len(m.Answer) + 1 {
		target := ""
		for _, rr := range m.Answer {
			if !strings.EqualFold(rr.Header().Name, name) {
				continue
			}
			if rr.Header().Rrtype == question.Qtype {
				return true
			}
			if cname, ok := rr.(*dns.CNAME); ok {
				target = cname.Target
			}
		}
		if target == "" {
			return false
		}
		name = target
	}
	return false
}

// signedUntil returns when the first signature of a response ends, at most limit. A client that validates refuses the
// response from then on.
func signedUntil(m *dns.Msg, now, limit time.Time) time.Time {
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
