package steer

import (
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// strip removes from HTTPS records (RFC 9460) what would lead a client past the proxy, record by record:
//
//	ipv4hint, ipv6hint   removed: some clients connect to them although they also have A and AAAA records (section 7.3)
//	ech                  removed: it hides the server name by which the proxy routes
//	h3, h3-* in alpn     removed: QUIC goes to UDP port 443, which a proxy for TCP does not carry (section 7.1)
//	alias form, another target name, a port   the whole record removed: it names another host or port (sections 2.4, 7.2)
//	an empty protocol in alpn   the whole record removed: it is malformed, and the DNS library cannot send it (section 2.2)
//	mandatory, no-default-alpn that can no longer be met   the whole record removed: a client must not use it (section 8)
//
// A record that remains still tells the client to use https at once.
func (p *Policy) strip(q dns.Question, res *dns.Msg, ttl uint32) (*dns.Msg, Verdict) {
	end := chainEnd(q.Name, res.Answer)
	answer := make([]dns.RR, 0, len(res.Answer))
	left, changed := 0, false
	for _, rr := range res.Answer {
		switch record := rr.(type) {
		case *dns.HTTPS:
			now, use := stripRecord(record, end)
			if changed = changed || now != record; !use {
				continue
			}
			if p.Flatten && end != q.Name {
				flat := *now
				flat.Hdr.Name, flat.Target = q.Name, "." // it was the chain's end, by name or by "."
				now, changed = &flat, true
			}
			left++
			answer = append(answer, now)
		case *dns.RRSIG:
			changed = true
		case *dns.CNAME, *dns.DNAME:
			if !p.Flatten {
				answer = append(answer, rr)
			}
		default:
			answer = append(answer, rr)
		}
	}
	switch {
	case left == 0:
		return p.noData(q, res, ttl), Suppressed
	case !changed:
		return res, Kept
	}
	out := reply(res)
	out.Answer = answer
	return out, Stripped
}

// stripRecord returns the record without what leads past the proxy (the same pointer when there is no such thing), and
// whether a client can still use it.
func stripRecord(rr *dns.HTTPS, owner string) (*dns.HTTPS, bool) {
	if rr.Priority == 0 || rr.Target != "." && !sameName(rr.Target, owner) {
		return nil, false
	}
	var params []dns.SVCBKeyValue
	removed := map[dns.SVCBKey]bool{}
	changed := false
	for _, kv := range rr.Value {
		switch kv := kv.(type) {
		case *dns.SVCBPort:
			return nil, false
		case *dns.SVCBIPv4Hint, *dns.SVCBIPv6Hint, *dns.SVCBECHConfig:
			removed[kv.Key()] = true
			continue
		case *dns.SVCBAlpn:
			if slices.Contains(kv.Alpn, "") {
				return nil, false
			}
			alpn := slices.DeleteFunc(slices.Clone(kv.Alpn), isHTTP3)
			if len(alpn) == len(kv.Alpn) {
				break
			}
			changed = true
			if len(alpn) == 0 {
				removed[kv.Key()] = true
				continue
			}
			params = append(params, &dns.SVCBAlpn{Alpn: alpn})
			continue
		}
		params = append(params, kv)
	}
	if !changed && len(removed) == 0 {
		return rr, true
	}
	for _, kv := range params {
		switch kv := kv.(type) {
		case *dns.SVCBMandatory:
			if slices.ContainsFunc(kv.Code, func(k dns.SVCBKey) bool { return removed[k] }) {
				return nil, false
			}
		case *dns.SVCBNoDefaultAlpn:
			if removed[dns.SVCB_ALPN] {
				return nil, false
			}
		}
	}
	return &dns.HTTPS{SVCB: dns.SVCB{Hdr: rr.Hdr, Priority: rr.Priority, Target: rr.Target, Value: params}}, true
}

func isHTTP3(protocol string) bool { return protocol == "h3" || strings.HasPrefix(protocol, "h3-") }

// chainEnd follows the CNAMEs of an answer from name, in the order they stand in.
func chainEnd(name string, answer []dns.RR) string {
	for _, rr := range answer {
		if cname, ok := rr.(*dns.CNAME); ok && sameName(cname.Hdr.Name, name) {
			name = cname.Target
		}
	}
	return name
}
