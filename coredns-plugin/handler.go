// Package longhaul implements a plugin that steers clients to a performance enhancing proxy: in the answers for listed
// names the proxy's addresses stand first and the origin's behind them, or the proxy's alone.
//
// An answer's way: handler.go asks the rest of the chain for the truth, policy (longhaul.go, https.go) decides on it without
// looking at anything but the messages and the configuration, fit.go keeps the result within the client's buffer.
package longhaul

import (
	"context"
	"net/netip"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/request"

	"example.org/longhaul/coredns-plugin/names"

	"github.com/miekg/dns"
)

const pluginName = "longhaul"

// Longhaul is the plugin's handler.
type Longhaul struct {
	Next plugin.Handler

	policy policy
	own    ownNames
	canary bool
	www    bool
	lists  *lists
	bypass *bypass
	proxy  *proxy
	counts counters
	// instant is nil where answers wait for the truth.
	instant *instant
}

// Name implements the plugin.Handler interface.
func (l *Longhaul) Name() string { return pluginName }

// ServeDNS implements the plugin.Handler interface.
func (l *Longhaul) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode != dns.OpcodeQuery || len(r.Question) != 1 || r.Question[0].Qclass != dns.ClassINET {
		return plugin.NextOrFailure(l.Name(), l.Next, ctx, w, r)
	}
	switch r.Question[0].Qtype {
	case dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS:
	default:
		return plugin.NextOrFailure(l.Name(), l.Next, ctx, w, r)
	}

	var key names.Key
	key.Read(r.Question[0].Name)
	if l.own.names.Has(&key) {
		return l.answerOwn(ctx, w, r)
	}
	if l.canary && canaries.Has(&key) {
		return l.answerCanary(ctx, w, r)
	}
	if !l.lists.listed(&key) && !(l.www && key.IsWWW()) {
		return plugin.NextOrFailure(l.Name(), l.Next, ctx, w, r)
	}
	return l.serveListed(ctx, w, r, &key)
}

// serveListed answers a query for the addresses or HTTPS records of a listed name.
func (l *Longhaul) serveListed(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, key *names.Key) (int, error) {
	q := r.Question[0] // a copy: plugins further on may rename the question in place
	counts := l.counts.of(metrics.WithServer(ctx))
	var asked *dns.EDNS0_SUBNET
	var subnet netip.Prefix
	if l.bypass.dependsOnSubnet() {
		asked, subnet = clientSubnet(r)
	}
	proxies, left := l.proxy.now()
	if l.lists.excepted(key) {
		left = leftExcept
	} else if l.bypass.has(sourceOf(w.RemoteAddr())) || asked != nil && l.bypass.hasAll(subnet) {
		left = leftClient
	}
	if left != 0 && asked == nil {
		counts.count(q.Qtype, left)
		return plugin.NextOrFailure(l.Name(), l.Next, ctx, w, r)
	}

	if l.instant != nil && left == 0 && asked == nil {
		if answer, what := l.answerAtOnce(w, q, r, proxies); answer != nil {
			counts.count(q.Qtype, what)
			return dns.RcodeSuccess, w.WriteMsg(answer)
		}
	}

	truth := nonwriter.New(w)
	rcode, err := plugin.NextOrFailure(l.Name(), l.Next, ctx, truth, r)
	if truth.Msg == nil {
		counts.count(q.Qtype, leftError)
		return rcode, err
	}
	answer, what := truth.Msg, left
	if left == 0 {
		answer, what = l.steer(ctx, w, q, r, truth.Msg, proxies)
		if l.instant != nil && len(proxies.of(q.Qtype)) > 0 && !l.policy.dnssec.leaves(r, true) {
			l.noteTruth(q, r, truth.Msg, proxies)
		}
	}
	counts.count(q.Qtype, what)
	if asked != nil {
		answer = withScope(answer, asked)
	}
	if writeErr := w.WriteMsg(answer); err == nil {
		err = writeErr
	}
	return rcode, err
}

// steer turns the true answer res into the one to give. The table of what happens to which query is in the README.
func (l *Longhaul) steer(ctx context.Context, w dns.ResponseWriter, q dns.Question, r, res *dns.Msg, proxies *addresses) (*dns.Msg, verdict) {
	if family := proxies.of(q.Qtype); len(family) > 0 {
		answer, what := l.policy.addresses(q, r, res, family)
		if what == steered {
			fit(request.Request{W: w, Req: r}, answer, len(family))
		}
		return answer, what
	}
	if q.Qtype == dns.TypeA || q.Qtype == dns.TypeAAAA && l.policy.passAAAA || q.Qtype == dns.TypeHTTPS && l.policy.https == httpsPass {
		return res, kept
	}

	// What is left would lead around the proxy. It goes only where the client can reach the proxy by the addresses of the
	// other family: taking AAAA from a name that has no A, or whose A answer stays as it is, would break that name.
	if left := readable(q, res); left != 0 {
		return res, left
	}
	if !hasType(res.Answer, q.Qtype) {
		return res, leftEmpty
	}
	if l.policy.dnssec.leaves(r, hasType(res.Answer, dns.TypeRRSIG)) {
		return res, leftDNSSEC
	}
	ttl, left := l.steeredElsewhere(ctx, w, q, r, proxies)
	if left != 0 {
		return res, left
	}
	if q.Qtype == dns.TypeHTTPS && l.policy.https == httpsStrip {
		return l.policy.strip(q, res, ttl)
	}
	return l.policy.noData(q, res, ttl), suppressed
}

// steeredElsewhere asks for the addresses of the name that a client would be steered by, and returns the TTL they are
// answered with, or why they are not steered. The question goes down the same chain, so a cache below answers it soon.
func (l *Longhaul) steeredElsewhere(ctx context.Context, w dns.ResponseWriter, q dns.Question, r *dns.Msg, proxies *addresses) (uint32, verdict) {
	q.Qtype = dns.TypeA
	if len(proxies.v4) == 0 {
		q.Qtype = dns.TypeAAAA
	}
	ask := r.Copy()
	ask.Question = []dns.Question{q}
	truth := nonwriter.New(w)
	if _, err := plugin.NextOrFailure(l.Name(), l.Next, ctx, truth, ask); err != nil || truth.Msg == nil {
		return 0, leftError
	}
	answer, what := l.policy.addresses(q, r, truth.Msg, proxies.of(q.Qtype))
	if what != steered {
		return 0, what
	}
	return answer.Answer[len(answer.Answer)-1].Header().Ttl, 0
}
