// Package push implements the ground's side of names that are sent before they are asked. It learns which names clients ask
// within seconds of a name, and sends the responses for those names to a remote that asks for the first one. While a remote
// asks nothing, it also sends the names that many clients ask for.
//
// The remote's side is package take. Both speak package wire. What is learned is in package followers.
package push

import (
	"context"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"

	"example.org/longhaul/coredns-plugin/internal/judge"
	"example.org/longhaul/coredns-plugin/internal/nobody"
	"example.org/longhaul/coredns-plugin/push/followers"
	"example.org/longhaul/coredns-plugin/push/wire"

	"github.com/miekg/dns"
)

const pluginName = "push"

// Push is the plugin's handler.
type Push struct {
	Next plugin.Handler

	hub *hub
}

// Name implements the plugin.Handler interface.
func (h *Push) Name() string { return pluginName }

// ServeDNS implements the plugin.Handler interface.
func (h *Push) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	query, mark, marked := wire.Unmark(r)
	var s *session
	if marked && h.hub != nil {
		s = h.hub.session(mark.Token)
	}
	question, learns := wire.QuestionOf(query)
	if s == nil || !learns {
		return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, query)
	}
	h.hub.asked(s, mark, question)
	truth := nonwriter.New(w)
	rcode, err := plugin.NextOrFailure(h.Name(), h.Next, ctx, truth, query)
	if truth.Msg == nil {
		return rcode, err
	}
	h.hub.sent(s, question, truth.Msg)
	if writeErr := w.WriteMsg(truth.Msg); err == nil {
		err = writeErr
	}
	return rcode, err
}

// typeOf are the bits of the types of record that are sent.
var typeOf = map[uint16]followers.Types{dns.TypeA: 1, dns.TypeAAAA: 2, dns.TypeHTTPS: 4}

// fetch returns the response to a question, nil if there is none to send. The second value is until when a remote has it.
func (h *Push) fetch(ctx context.Context, question wire.Question, keeps time.Duration, now func() time.Time) (*dns.Msg, time.Time) {
	query := new(dns.Msg).SetQuestion(question.Name, question.Type)
	query.AuthenticatedData = true
	query.SetEdns0(1232, false)
	taken := nonwriter.New(nobody.Writer{})
	if _, err := plugin.NextOrFailure(h.Name(), h.Next, ctx, taken, query); err != nil || taken.Msg == nil {
		return nil, time.Time{}
	}
	if taken.Msg.Rcode != dns.RcodeSuccess {
		// A name that does not exist was asked once, and is no part of a page.
		return nil, time.Time{}
	}
	until := hasUntil(taken.Msg, keeps, now())
	if until.IsZero() {
		return nil, time.Time{}
	}
	return lean(taken.Msg), until
}

// hasUntil returns the time until which a remote serves a response, zero if it does not keep it.
func hasUntil(m *dns.Msg, keeps time.Duration, now time.Time) time.Time {
	switch fate, ttl := judge.Of(m, now); fate {
	case judge.Keep:
		return judge.SignedUntil(m, now, now.Add(max(keeps, ttl)))
	case judge.KeepDenial:
		return now.Add(ttl)
	default:
		return time.Time{}
	}
}

// lean returns a response without what no client needs: records beside the chain of the name, and glue.
func lean(m *dns.Msg) *dns.Msg {
	out := *m
	out.Answer, out.Ns, out.Extra = judge.Chain(m), nil, nil
	if judge.Answers(&out) {
		return &out
	}
	for _, rr := range m.Ns {
		if soa, ok := rr.(*dns.SOA); ok {
			out.Ns = []dns.RR{soa}
		}
	}
	return &out
}
