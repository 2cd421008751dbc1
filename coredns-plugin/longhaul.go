package longhaul

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// verdict is what became of one answer. Everything but the first four is a reason to have left it as it was.
type verdict uint8

const (
	steered    verdict = iota + 1 // the proxy's addresses stand first, or alone
	suppressed                    // answered "no such data", so that the client uses what we steer
	stripped                      // an HTTPS record lost what leads past the proxy
	kept                          // nothing in it leads past the proxy

	leftClient    // asked by the proxy itself, or by a client that is to see the truth
	leftExcept    // listed, but excepted
	leftPaused    // the switch is off
	leftUnhealthy // no proxy listener answers
	leftError     // the truth is an error (NXDOMAIN, SERVFAIL, ...) or no answer came
	leftEmpty     // the truth is that there is no such record
	leftTruncated // the client will ask again over TCP
	leftDNSSEC    // the client would see that a signed answer was changed
	leftPrivate   // the name lives on a private network, or its answer leads to the proxy already
	leftMalformed // the answer does not read as one to the question
	verdicts
)

// String is the word for it in metrics and logs.
func (v verdict) String() string {
	return [verdicts]string{
		steered: "steered", suppressed: "suppressed", stripped: "stripped", kept: "kept",
		leftClient: "client", leftExcept: "except", leftPaused: "paused", leftUnhealthy: "unhealthy", leftError: "error",
		leftEmpty: "empty", leftTruncated: "truncated", leftDNSSEC: "dnssec", leftPrivate: "private", leftMalformed: "malformed",
	}[v]
}

// policy is the part of the configuration that decides about answers. It does not change while the server runs.
type policy struct {
	replace      bool // the origin's addresses are left out
	flatten      bool // records belong to the name asked for, and the CNAMEs that lead to them are left out
	maxOrigin    int  // origin addresses kept behind the proxy's
	ttl          ttlRule
	passAAAA     bool
	https        httpsPolicy
	dnssec       dnssecPolicy
	allowPrivate []netip.Prefix
}

type httpsPolicy uint8

const (
	httpsNoData httpsPolicy = iota
	httpsStrip
	httpsPass
)

// dnssecPolicy says which answers are left alone because somebody may check them.
type dnssecPolicy uint8

const (
	dnssecSkip   dnssecPolicy = iota // signed ones when DO is set, and all when CD is: the client checks for itself
	dnssecSigned                     // signed ones when DO is set: without signatures there is nothing to check
	dnssecBreak                      // none
)

// leaves reports whether the answer to req, signed or not, is left alone.
func (d dnssecPolicy) leaves(req *dns.Msg, signed bool) bool {
	switch d {
	case dnssecBreak:
		return false
	case dnssecSkip:
		if req.CheckingDisabled {
			return true
		}
	}
	return signed && wantsDNSSEC(req)
}

// ttlRule makes the one TTL of a steered answer: the origin's lowest, held between min and max. One RRset has one TTL
// (RFC 2181 section 5.2); caches that are given two lose either the proxy or the origin. split breaks that rule on purpose,
// to repeat the measurements of the paper that proposed it: the proxy's records get it, the origin's keep their own.
type ttlRule struct {
	min, max uint32 // seconds
	split    uint32 // seconds, 0 for off
}

func (t ttlRule) hold(ttl uint32) uint32 { return min(max(ttl, t.min), t.max) }

// addresses places proxies into res, the answer to the A or AAAA question q. It returns res itself when the answer is to be
// left as it is, and never changes res or a record in it: they may belong to a cache or a zone that answers from them again.
func (p *policy) addresses(q dns.Question, req, res *dns.Msg, proxies []netip.Addr) (*dns.Msg, verdict) {
	var room [8]netip.Addr // enough for nearly every answer, and on the stack
	set, addrs, left := readAddresses(q, res, room[:0])
	if left != 0 {
		return res, left
	}
	if p.dnssec.leaves(req, set.signed) {
		return res, leftDNSSEC
	}
	if p.staysPrivate(addrs, proxies) {
		return res, leftPrivate
	}

	ttl := p.ttl.hold(set.ttl)
	owner, before := set.owner, set.before
	if p.flatten {
		owner, before = q.Name, nil
	}
	proxyTTL := ttl
	if p.ttl.split != 0 {
		proxyTTL = p.ttl.split
	}
	var places [8]lease // as room
	leases := places[:0]
	for _, addr := range proxies {
		leases = append(leases, lease{addr, proxyTTL})
	}
	if !p.replace {
		leases = p.appendOrigins(leases, set.from, addrs, proxies, ttl)
	}
	out := reply(res)
	out.Answer = make([]dns.RR, 0, len(before)+len(leases))
	for _, rr := range before {
		if rr = p.withTTL(rr, ttl); rr != nil {
			out.Answer = append(out.Answer, rr)
		}
	}
	out.Answer = appendRecords(out.Answer, owner, leases)
	return out, steered
}

// appendOrigins appends the origin's addresses that are kept, in their order and each once: addrs, which are in records.
func (p *policy) appendOrigins(leases []lease, records []dns.RR, addrs, proxies []netip.Addr, ttl uint32) []lease {
	seen, kept := 0, 0
	for _, rr := range records {
		if rr.Header().Rrtype == dns.TypeRRSIG {
			continue
		}
		addr, before := addrs[seen], addrs[:seen]
		seen++
		if contains(proxies, addr) || contains(before, addr) {
			continue
		}
		if kept++; kept > p.maxOrigin {
			break
		}
		leases = append(leases, lease{addr, p.ttlOf(rr, ttl)})
	}
	return leases
}

// ttlOf is the TTL of rr in an answer that lives ttl seconds: under split TTLs its own, which is never 0 beside others.
func (p *policy) ttlOf(rr dns.RR, ttl uint32) uint32 {
	if p.ttl.split != 0 {
		return max(rr.Header().Ttl, 1)
	}
	return ttl
}

// withTTL returns a copy of rr, a link of a chain, in an answer that lives ttl seconds. It returns nil for a signature, which
// no longer fits.
func (p *policy) withTTL(rr dns.RR, ttl uint32) dns.RR {
	ttl = p.ttlOf(rr, ttl)
	switch rr := rr.(type) {
	case *dns.RRSIG:
		return nil
	case *dns.CNAME: // without the detour of dns.Copy: nearly all links are these
		c := *rr
		c.Hdr.Ttl = ttl
		return &c
	}
	rr = dns.Copy(rr)
	rr.Header().Ttl = ttl
	return rr
}

// staysPrivate reports whether an answer that leads to addrs has no public address to steer away from: the name belongs to
// the local network (or is blocked by a sinkhole address), or all of its addresses are the proxy's own.
func (p *policy) staysPrivate(addrs, proxies []netip.Addr) bool {
	for _, addr := range addrs {
		if contains(proxies, addr) {
			continue
		}
		if isPublic(addr) || containsIn(p.allowPrivate, addr) {
			return false
		}
	}
	return true
}

// addressSet is the address records an answer ends in, read but not copied.
type addressSet struct {
	owner  string   // of the records: the end of the CNAME chain, spelt as in the answer
	before []dns.RR // what stands before the first address: the chain
	from   []dns.RR // the first address and what follows it: addresses and signatures
	ttl    uint32   // lowest TTL of chain and addresses
	signed bool     // a signature came with them
}

// readAddresses finds the addresses that res gives for q, in their order, or the reason why there are none to steer. They are
// appended to room: apart from the set, so that the room may be on the caller's stack.
func readAddresses(q dns.Question, res *dns.Msg, room []netip.Addr) (set addressSet, addrs []netip.Addr, left verdict) {
	if left := readable(q, res); left != 0 {
		return set, nil, left
	}
	addrs, set.owner, set.ttl = room, q.Name, ^uint32(0)
	for i, rr := range res.Answer {
		h := rr.Header()
		switch h.Rrtype {
		case q.Qtype:
			if !sameName(h.Name, set.owner) {
				return set, nil, leftMalformed
			}
			addr, ok := addressOf(rr)
			if !ok {
				return set, nil, leftMalformed
			}
			if set.from == nil {
				set.owner, set.before, set.from = h.Name, res.Answer[:i], res.Answer[i:]
			}
			addrs = append(addrs, addr)
		case dns.TypeRRSIG:
			set.signed = true // also over a link of the chain only: its TTL changes, and the signature would have to go
			continue
		case dns.TypeCNAME:
			cname, ok := rr.(*dns.CNAME)
			if !ok || set.from != nil || !sameName(h.Name, set.owner) {
				return set, nil, leftMalformed // out of order, or not a link of the chain
			}
			set.owner = cname.Target
		case dns.TypeDNAME: // explains the CNAME that follows it
		default:
			return set, nil, leftMalformed
		}
		set.ttl = min(set.ttl, h.Ttl)
	}
	if set.from == nil {
		return set, nil, leftEmpty
	}
	return set, addrs, 0
}

// readable tells why an answer must pass as it is whatever its records say, 0 if its records are to be read.
func readable(q dns.Question, res *dns.Msg) verdict {
	switch {
	case res.Truncated:
		return leftTruncated
	case res.Rcode != dns.RcodeSuccess:
		return leftError
	case !res.Response || len(res.Question) != 1 || res.Question[0].Qtype != q.Qtype || !sameName(res.Question[0].Name, q.Name):
		return leftMalformed
	}
	return 0
}

// reply begins a changed answer: the header and question of res, not authoritative and not authentic any more, none of its
// records but the OPT. Name servers and their addresses are left out: they are of no use to who was given an answer, and in
// a small UDP message they would set the truncated bit where the answer itself fits.
func reply(res *dns.Msg) *dns.Msg {
	out := &dns.Msg{MsgHdr: res.MsgHdr, Compress: res.Compress, Question: res.Question}
	out.Authoritative, out.AuthenticatedData = false, false
	if opt := res.IsEdns0(); opt != nil {
		out.Extra = []dns.RR{dns.Copy(opt)} // copied: the server writes the client's own size and flags into it
	}
	return out
}

// noData answers q with "no such data", behind the CNAME chain of res. A negative answer without an SOA is not
// cached, and every page would ask for it again (RFC 2308 section 5); the true zone's SOA is not at hand, so one is made up
// at the name itself.
func (p *policy) noData(q dns.Question, res *dns.Msg, ttl uint32) *dns.Msg {
	out := reply(res)
	owner := q.Name
	for _, rr := range res.Answer {
		if cname, ok := rr.(*dns.CNAME); ok && !p.flatten && sameName(cname.Hdr.Name, owner) {
			owner = cname.Target
			link := *cname
			link.Hdr.Ttl = ttl
			out.Answer = append(out.Answer, &link)
		}
	}
	out.Ns = []dns.RR{soaFor(owner, ttl)}
	return out
}

// soaFor makes the SOA of a negative answer about owner that lives for ttl seconds. Its names tell who looks for the server
// behind it that there is none.
func soaFor(owner string, ttl uint32) *dns.SOA {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: ttl},
		Ns:  "longhaul.invalid.", Mbox: "nobody.invalid.",
		Serial: 1, Refresh: 3600, Retry: 1200, Expire: 604800, Minttl: ttl,
	}
}

func wantsDNSSEC(req *dns.Msg) bool {
	opt := req.IsEdns0()
	return opt != nil && opt.Do()
}

func hasType(rrs []dns.RR, t uint16) bool {
	return slices.ContainsFunc(rrs, func(rr dns.RR) bool { return rr.Header().Rrtype == t })
}

// sameName compares names as DNS does. They are nearly always the same text: whoever answered copied the question.
func sameName(a, b string) bool { return a == b || strings.EqualFold(a, b) }
