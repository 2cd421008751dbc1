// Package longhaul implements a plugin that steers clients to a performance enhancing proxy: in the responses for
// listed names the proxy's addresses stand first and the origin's behind them, or the proxy's alone.
//
// This package keeps the chain of plugins, the lists, the proxy's health and the metrics. Package steer decides: it takes
// the query and the true response and returns the response for the client.
package longhaul

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/request"

	"example.org/longhaul/coredns-plugin/apart"
	"example.org/longhaul/coredns-plugin/internal/explain"
	"example.org/longhaul/coredns-plugin/names"
	"example.org/longhaul/coredns-plugin/steer"

	"github.com/miekg/dns"
)

const pluginName = "longhaul"

// Longhaul is the plugin's handler.
type Longhaul struct {
	Next plugin.Handler

	policy  steer.Policy
	own     ownNames
	canary  bool
	www     bool
	lists   *lists
	bypass  *bypass
	compare share
	proxy   *proxy
	counts  counters
	table   *apart.Table
	// instant is nil where responses wait for the truth.
	instant *instant
	// firstVisits is nil where responses for names on no list wait for it.
	firstVisits *firstVisits
	// intercepted: the proxy meets the clients' connections at the true addresses, so names keep them.
	intercepted bool
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
		return l.serveOwn(ctx, w, r)
	}
	if l.canary && canaries.Has(&key) {
		return l.serveCanary(ctx, w, r)
	}
	if !l.lists.listed(&key) && !(l.www && key.IsWWW()) {
		return l.serveUnlisted(ctx, w, r)
	}
	return l.serveListed(ctx, w, r, &key)
}

// serveListed serves a query for the addresses or HTTPS records of a listed name.
func (l *Longhaul) serveListed(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, key *names.Key) (int, error) {
	ctx, explained := explain.Begin(ctx, w, r)
	query := queryOf(w, r)
	counts := l.counts.of(metrics.WithServer(ctx))
	proxies, left := l.proxy.now()
	scope, bypassed := l.bypasses(w, r)
	if l.lists.excepted(key) {
		left = steer.LeftExcept
	} else if bypassed {
		left = steer.LeftClient
	}
	if left != 0 && scope == nil && !explained {
		counts.count(query.Question.Qtype, left)
		return plugin.NextOrFailure(l.Name(), l.Next, ctx, w, r)
	}
	respond := func(answer *dns.Msg, verdict steer.Verdict) error {
		counts.count(query.Question.Qtype, verdict)
		if scope != nil {
			answer = steer.WithScope(answer, scope)
		}
		if explained {
			answer = steer.Explained(answer, verdict)
		}
		return w.WriteMsg(answer)
	}
	if left == 0 && scope == nil {
		if answer, verdict := l.answerAtOnce(w, query); answer != nil {
			return dns.RcodeSuccess, respond(answer, verdict)
		}
	}
	notes := left == 0
	if notes && l.intercepted {
		left = steer.LeftIntercepted
	}

	truth, rcode, err := l.ask(ctx, w, r)
	if truth == nil {
		counts.count(query.Question.Qtype, steer.LeftError)
		return rcode, err
	}
	answer, verdict := truth, left
	if left == 0 {
		answer, verdict = l.steer(ctx, w, query, truth, proxies)
	}
	if notes {
		l.noteTruth(query, truth)
	}
	if writeErr := respond(answer, verdict); err == nil {
		err = writeErr
	}
	return rcode, err
}

// queryOf is what the policy sees of a query. It is made before any other plugin gets the message.
func queryOf(w dns.ResponseWriter, r *dns.Msg) steer.Query {
	state := request.Request{W: w, Req: r}
	return steer.Query{Msg: r, Question: r.Question[0], Size: state.Size()}
}

// bypasses reports whether the client gets the truth, and the option of its query that the response's scope depends on.
func (l *Longhaul) bypasses(w dns.ResponseWriter, r *dns.Msg) (*dns.EDNS0_SUBNET, bool) {
	source := sourceOf(w.RemoteAddr())
	bypassed := l.bypass.has(source) || l.compare.has(source)
	if !l.bypass.dependsOnSubnet() {
		return nil, bypassed
	}
	scope, subnet := steer.ClientSubnet(r)
	return scope, bypassed || scope != nil && l.bypass.hasAll(subnet)
}

// ask gets the truth from the rest of the chain, nil if it gives none.
func (l *Longhaul) ask(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (*dns.Msg, int, error) {
	truth := nonwriter.New(w)
	rcode, err := plugin.NextOrFailure(l.Name(), l.Next, ctx, truth, r)
	return truth.Msg, rcode, err
}

// steer lets the policy decide. The second query goes down the same chain, so a cache below answers it soon.
func (l *Longhaul) steer(ctx context.Context, w dns.ResponseWriter, query steer.Query, truth *dns.Msg, proxies *steer.Addresses) (*dns.Msg, steer.Verdict) {
	var other *dns.Msg
	if qtype := l.policy.OtherQuery(query, truth, proxies); qtype != 0 {
		question := query.Question
		question.Qtype = qtype
		second := query.Copy()
		second.Question = []dns.Question{question}
		response, _, err := l.ask(ctx, w, second)
		if err == nil {
			other = response
		}
	}
	return l.policy.Answer(query, truth, other, proxies)
}
