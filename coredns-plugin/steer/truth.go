package steer

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// roomForAddresses is enough for nearly every response, and small enough for the stack.
const roomForAddresses = 8

// steerable reads the addresses of a true response to an A or AAAA query, or gives the reason why it stays as it is. The
// addresses are appended to room.
func (p *Policy) steerable(query Query, response *dns.Msg, proxies, room []netip.Addr) (addressSet, []netip.Addr, Verdict) {
	set, origins, reason := readAddresses(query.Question, response, room)
	switch {
	case reason != 0:
	case p.leavesSigned(query.Msg, set.signed):
		reason = LeftDNSSEC
	case p.staysPrivate(origins, proxies):
		reason = LeftPrivate
	}
	return set, origins, reason
}

// leavesOther gives the reason why a response that the proxy has no address for stays as it is, 0 if it may go.
func (p *Policy) leavesOther(query Query, response *dns.Msg) Verdict {
	if reason := unreadable(query.Question, response); reason != 0 {
		return reason
	}
	switch {
	case !hasType(response.Answer, query.Question.Qtype):
		return LeftEmpty
	case p.leavesSigned(query.Msg, hasType(response.Answer, dns.TypeRRSIG)):
		return LeftDNSSEC
	}
	return 0
}

// leavesSigned reports whether a response, signed or not, stays as it is because the client may validate it. DO asks for
// signatures (RFC 3225 section 3), CD announces a client that validates by itself (RFC 4035 section 3.2.2).
func (p *Policy) leavesSigned(query *dns.Msg, signed bool) bool {
	switch p.DNSSEC {
	case DNSSECBreak:
		return false
	case DNSSECSkip:
		if query.CheckingDisabled {
			return true
		}
	}
	opt := query.IsEdns0()
	return signed && opt != nil && opt.Do()
}

// staysPrivate reports whether a response that leads to addrs has no public address to steer away from: the name belongs to
// the local network (or is blocked by a sinkhole address), or all of its addresses are the proxy's own.
func (p *Policy) staysPrivate(addrs, proxies []netip.Addr) bool {
	return !slices.ContainsFunc(addrs, func(addr netip.Addr) bool {
		own := slices.Contains(proxies, addr) || containsIn(p.Ranges, addr)
		return !own && (isPublic(addr) || containsIn(p.AllowPrivate, addr))
	})
}

// unreadable gives the reason why a response stays as it is whatever its records say, 0 if its records are to be read.
func unreadable(question dns.Question, response *dns.Msg) Verdict {
	switch {
	case response.Truncated:
		return LeftTruncated
	case response.Rcode != dns.RcodeSuccess:
		return LeftError
	case !response.Response || len(response.Question) != 1:
		return LeftMalformed
	case response.Question[0].Qtype != question.Qtype || !sameName(response.Question[0].Name, question.Name):
		return LeftMalformed
	}
	return 0
}

// addressSet is the address records that a response ends in, read but not copied.
type addressSet struct {
	owner  string   // of the records: the end of the CNAME chain, spelt as in the response
	before []dns.RR // the records before the first address: the chain
	from   []dns.RR // the first address and the records after it: addresses and signatures
	ttl    uint32   // lowest TTL of chain and addresses
	signed bool     // a signature came with them
}

// readAddresses finds the addresses in a response, in their order, or the reason why there are none to steer. They are
// appended to room: apart from the set, so that the room may be on the caller's stack.
func readAddresses(question dns.Question, response *dns.Msg, room []netip.Addr) (set addressSet, addrs []netip.Addr, reason Verdict) {
	if reason := unreadable(question, response); reason != 0 {
		return set, nil, reason
	}
	addrs, set.owner, set.ttl = room, question.Name, ^uint32(0)
	for i, rr := range response.Answer {
		h := rr.Header()
		switch h.Rrtype {
		case question.Qtype:
			addr, ok := addressOf(rr)
			if !ok || !sameName(h.Name, set.owner) {
				return set, nil, LeftMalformed
			}
			if set.from == nil {
				set.owner, set.before, set.from = h.Name, response.Answer[:i], response.Answer[i:]
			}
			addrs = append(addrs, addr)
		case dns.TypeRRSIG:
			set.signed = true // also over a link of the chain only: its TTL changes, and the signature would have to go
			continue
		case dns.TypeCNAME:
			cname, ok := rr.(*dns.CNAME)
			if !ok || set.from != nil || !sameName(h.Name, set.owner) {
				return set, nil, LeftMalformed // out of order, or not a link of the chain
			}
			set.owner = cname.Target
		case dns.TypeDNAME: // explains the CNAME that follows it (RFC 6672 section 3.1)
		default:
			return set, nil, LeftMalformed
		}
		set.ttl = min(set.ttl, h.Ttl)
	}
	if set.from == nil {
		return set, nil, LeftEmpty
	}
	return set, addrs, 0
}

func hasType(rrs []dns.RR, t uint16) bool {
	return slices.ContainsFunc(rrs, func(rr dns.RR) bool { return rr.Header().Rrtype == t })
}

// sameName compares names as DNS does. They are nearly always the same text: resolvers copy the question.
func sameName(a, b string) bool { return a == b || strings.EqualFold(a, b) }
