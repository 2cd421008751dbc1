package steer

import (
	"net/netip"
	"slices"

	"github.com/miekg/dns"
)

// placeProxies makes the steered response: the chain, the proxies, and the origin's addresses behind them unless the policy
// replaces them.
func (p *Policy) placeProxies(question dns.Question, response *dns.Msg, set addressSet, origins, proxies []netip.Addr) *dns.Msg {
	owner, before, ttl := set.owner, set.before, p.TTL.hold(set.ttl)
	if p.Flatten {
		owner, before = question.Name, nil
	}
	var room [roomForAddresses]netip.Addr
	addrs := append(room[:0], proxies...)
	if !p.Replace {
		addrs = p.appendOrigins(addrs, origins)
	}
	out := reply(response)
	out.Answer = make([]dns.RR, 0, len(before)+len(addrs))
	for _, rr := range before {
		if link := withTTL(rr, ttl); link != nil {
			out.Answer = append(out.Answer, link)
		}
	}
	out.Answer = appendRecords(out.Answer, owner, addrs, ttl)
	return out
}

// appendOrigins appends the first MaxOrigin of the origin's addresses to the proxy's, in their order and each once.
func (p *Policy) appendOrigins(addrs, origins []netip.Addr) []netip.Addr {
	most := len(addrs) + p.MaxOrigin
	for _, addr := range origins {
		if len(addrs) == most {
			break
		}
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// withTTL returns a copy of a link of the chain with another TTL. It returns nil for a signature, which no longer fits.
func withTTL(rr dns.RR, ttl uint32) dns.RR {
	switch rr := rr.(type) {
	case *dns.RRSIG:
		return nil
	case *dns.CNAME: // without the detour of dns.Copy: nearly all links are these
		link := *rr
		link.Hdr.Ttl = ttl
		return &link
	}
	rr = dns.Copy(rr)
	rr.Header().Ttl = ttl
	return rr
}

// withMaxTTL returns a copy of response in which no record lives for more than ttl seconds.
func withMaxTTL(response *dns.Msg, ttl uint32) *dns.Msg {
	out := response.Copy()
	for _, records := range [][]dns.RR{out.Answer, out.Ns} {
		for _, rr := range records {
			rr.Header().Ttl = min(rr.Header().Ttl, ttl)
		}
	}
	return out
}

// reply begins a changed response: the header and question of the true one, not authoritative and not authentic any more,
// with no record but the OPT. Name servers and their addresses are left out. They are of no use to a client that has the
// address, and in a small UDP message they would set the truncated bit where the answer itself fits.
func reply(response *dns.Msg) *dns.Msg {
	out := &dns.Msg{MsgHdr: response.MsgHdr, Compress: response.Compress, Question: response.Question}
	out.Authoritative, out.AuthenticatedData = false, false
	if opt := response.IsEdns0(); opt != nil {
		out.Extra = []dns.RR{dns.Copy(opt)} // copied: the server writes the client's own size and flags into it
	}
	return out
}

// noData responds "no data" behind the CNAME chain of the true response. A negative response without an SOA is not cached,
// and every page would repeat the query (RFC 2308 section 5). The true zone's SOA is not at hand, so one is made up at the
// name itself.
func (p *Policy) noData(question dns.Question, response *dns.Msg, ttl uint32) *dns.Msg {
	out := reply(response)
	owner := question.Name
	for _, rr := range response.Answer {
		if cname, ok := rr.(*dns.CNAME); ok && !p.Flatten && sameName(cname.Hdr.Name, owner) {
			owner = cname.Target
			out.Answer = append(out.Answer, withTTL(cname, ttl))
		}
	}
	out.Ns = []dns.RR{soaFor(owner, ttl)}
	return out
}

// soaFor makes the SOA of a negative response about owner that lives for ttl seconds. Its names say that no server is
// behind it.
func soaFor(owner string, ttl uint32) *dns.SOA {
	return &dns.SOA{
		Hdr: header(owner, dns.TypeSOA, ttl),
		Ns:  "longhaul.invalid.", Mbox: "nobody.invalid.",
		Serial: 1, Refresh: 3600, Retry: 1200, Expire: 604800, Minttl: ttl,
	}
}

// appendRecords appends the A or AAAA records of addresses, all of one family, that belong to owner. However many they are,
// they are made in one piece: this is done for every steered response.
func appendRecords(answer []dns.RR, owner string, addrs []netip.Addr, ttl uint32) []dns.RR {
	if len(addrs) == 0 {
		return answer
	}
	if addrs[0].Is4() {
		made := make([]struct {
			record dns.A
			ip     [4]byte
		}, len(addrs))
		for i, addr := range addrs {
			m := &made[i]
			m.ip = addr.As4()
			m.record = dns.A{Hdr: header(owner, dns.TypeA, ttl), A: m.ip[:]}
			answer = append(answer, &m.record)
		}
		return answer
	}
	made := make([]struct {
		record dns.AAAA
		ip     [16]byte
	}, len(addrs))
	for i, addr := range addrs {
		m := &made[i]
		m.ip = addr.As16()
		m.record = dns.AAAA{Hdr: header(owner, dns.TypeAAAA, ttl), AAAA: m.ip[:]}
		answer = append(answer, &m.record)
	}
	return answer
}

func header(owner string, rrtype uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
}
