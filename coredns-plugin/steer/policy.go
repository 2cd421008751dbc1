// Package steer is the plugin's policy: it decides how the response to a query leaves. The true response leaves as it came,
// with the proxy's addresses in it, or as "no data". The package looks at messages and configuration alone. It knows no
// network, no clock, no list of names and no other plugin.
//
// Policy.Answer reads downward: each predicate may give a reason to leave the truth, and one act follows them.
//
//	policy.go      the configuration and the decision
//	truth.go       reads the true response, and gives the reasons to leave it
//	verdict.go     the outcomes and reasons
//	reply.go       makes changed responses
//	https.go       removes from HTTPS records what leads past the proxy
//	fit.go         keeps a response within the client's buffer
//	synthesis.go   makes responses that need no truth
//	subnet.go      EDNS client subnets
//	address.go     public and other addresses
package steer

import (
	"net/netip"

	"github.com/miekg/dns"
)

// Policy is the part of the configuration that decides about responses. It does not change while the server runs.
type Policy struct {
	Replace      bool // the origin's addresses are left out
	Flatten      bool // records belong to the name in the query, and the CNAMEs that lead to them are left out
	MaxOrigin    int  // origin addresses kept behind the proxy's
	TTL          TTL
	PassAAAA     bool
	HTTPS        HTTPS
	DNSSEC       DNSSEC
	AllowPrivate []netip.Prefix
	Ranges       []netip.Prefix // the proxy's, beside its addresses
	Place        Placement      // nil: every name gets all of the proxy's addresses
}

// unreadTTL is the TTL of the truth about a name that may be steered in a moment, in seconds.
const unreadTTL = 10

// TTL bounds the one TTL of a steered response, in seconds: it is the origin's lowest, held between Min and Max. One RRset
// has one TTL (RFC 2181 section 5.2). Caches that get two lose either the proxy or the origin.
type TTL struct{ Min, Max uint32 }

func (t TTL) hold(ttl uint32) uint32 { return min(max(ttl, t.Min), t.Max) }

// HTTPS chooses the response to HTTPS queries.
type HTTPS uint8

// The values of HTTPS.
const (
	HTTPSNoData HTTPS = iota
	HTTPSStrip        // records without what leads past the proxy
	HTTPSPass
)

// DNSSEC chooses the responses that stay as they are because somebody may validate them.
type DNSSEC uint8

// The values of DNSSEC.
const (
	DNSSECSkip   DNSSEC = iota // signed ones when DO is set, and all when CD is: the client validates by itself
	DNSSECSigned               // signed ones when DO is set: without signatures there is nothing to validate
	DNSSECBreak                // none
)

// Query is a client's query.
type Query struct {
	*dns.Msg
	// Question is a copy, because plugins further on may rename the message's own in place.
	Question dns.Question
	// Size is the largest response that the client accepts, in bytes.
	Size int
}

// of returns the same query for another type.
func (q Query) of(qtype uint16) Query {
	q.Question.Qtype = qtype
	return q
}

// Placement chooses the proxy's addresses for a name whose server has the addresses origins, or gives the reason why none is
// safe. All are of one family. Clients may use the choice for ttl seconds.
type Placement func(name string, origins, proxies []netip.Addr, ttl uint32) ([]netip.Addr, Verdict)

// Answer turns the true response to a query into the response for the client. It returns response itself where the truth
// stays, with the reason. It never changes response or a record in it: a cache or a zone may own them.
//
// other is the true response to the query that OtherQuery names. It is nil if there is no such query or it failed.
func (p *Policy) Answer(query Query, response, other *dns.Msg, proxies *Addresses) (*dns.Msg, Verdict) {
	answer, verdict := p.answer(query, response, other, proxies)
	if verdict == LeftUnread {
		answer = withMaxTTL(answer, unreadTTL)
	}
	return answer, verdict
}

func (p *Policy) answer(query Query, response, other *dns.Msg, proxies *Addresses) (*dns.Msg, Verdict) {
	if family := proxies.Of(query.Question.Qtype); len(family) > 0 {
		return p.answerAddresses(query, response, family)
	}
	if p.passes(query.Question.Qtype) {
		return response, Kept
	}
	if reason := p.leavesOther(query, response); reason != 0 {
		return response, reason
	}
	if other == nil {
		return response, LeftError
	}
	var room [roomForAddresses]netip.Addr
	first := proxies.FirstType()
	set, _, _, reason := p.placed(query.of(first), other, proxies.Of(first), room[:0])
	if reason != 0 {
		return response, reason
	}
	ttl := p.TTL.hold(set.ttl)
	if query.Question.Qtype == dns.TypeHTTPS && p.HTTPS == HTTPSStrip {
		return p.strip(query.Question, response, ttl)
	}
	return p.noData(query.Question, response, ttl), Suppressed
}

// OtherQuery returns the type of the second query that Answer needs the true response of, for the same name. It returns 0 if
// Answer needs none.
//
// A response without an address of the proxy can only be taken away. It goes only where the client can reach the proxy by the
// addresses of the other family: without AAAA, a name that has no A, or whose A response stays as it is, would break.
func (p *Policy) OtherQuery(query Query, response *dns.Msg, proxies *Addresses) uint16 {
	qtype := query.Question.Qtype
	if len(proxies.Of(qtype)) > 0 || p.passes(qtype) || p.leavesOther(query, response) != 0 {
		return 0
	}
	return proxies.FirstType()
}

// placed reads the addresses of a true response and chooses the proxy's, or gives the reason why the truth stays.
func (p *Policy) placed(query Query, response *dns.Msg, proxies, room []netip.Addr) (addressSet, []netip.Addr, []netip.Addr, Verdict) {
	set, origins, reason := p.steerable(query, response, proxies, room)
	if reason == 0 && p.Place != nil {
		proxies, reason = p.Place(query.Question.Name, origins, proxies, p.TTL.hold(set.ttl))
	}
	return set, origins, proxies, reason
}

// Steers reports what Answer, but for Place, makes of an A or AAAA query whose true response is response, and the TTL of a steered one.
func (p *Policy) Steers(query Query, response *dns.Msg, proxies *Addresses) (uint32, Verdict) {
	var room [roomForAddresses]netip.Addr
	set, _, reason := p.steerable(query, response, proxies.Of(query.Question.Qtype), room[:0])
	if reason != 0 {
		return 0, reason
	}
	return p.TTL.hold(set.ttl), Steered
}

// MayValidate reports whether the policy leaves a signed response to this query alone.
func (p *Policy) MayValidate(query *dns.Msg) bool { return p.leavesSigned(query, true) }

// answerAddresses places proxies into the response to an A or AAAA query.
func (p *Policy) answerAddresses(query Query, response *dns.Msg, proxies []netip.Addr) (*dns.Msg, Verdict) {
	var room [roomForAddresses]netip.Addr
	set, origins, proxies, reason := p.placed(query, response, proxies, room[:0])
	if reason != 0 {
		return response, reason
	}
	answer := p.placeProxies(query.Question, response, set, origins, proxies)
	fit(query, answer, len(proxies))
	return answer, Steered
}

// passes reports whether queries of this type get the truth although it leads past the proxy.
func (p *Policy) passes(qtype uint16) bool {
	switch qtype {
	case dns.TypeAAAA:
		return p.PassAAAA
	case dns.TypeHTTPS:
		return p.HTTPS == HTTPSPass
	}
	return true
}
