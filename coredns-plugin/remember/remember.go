// Package remember implements a plugin that keeps responses for days, also over a restart. A stale one is served at once and
// queried again in the background (RFC 8767), so a name that was looked up before costs no round trip.
//
// It takes the place of the stock cache where each query crosses a slow link. It stands behind longhaul, so it holds the
// truth alone.
package remember

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/request"

	"example.org/longhaul/coredns-plugin/internal/explain"
	"example.org/longhaul/coredns-plugin/internal/judge"
	"example.org/longhaul/coredns-plugin/internal/meanwhile"
	"example.org/longhaul/coredns-plugin/push/take"
	"example.org/longhaul/coredns-plugin/remember/store"

	"github.com/miekg/dns"
)

const pluginName = "remember"

// Remember is the plugin's handler.
type Remember struct {
	Next plugin.Handler

	memory *memory
	// span is how long a response is kept.
	span      time.Duration
	refresher *refresher
	// taker takes what the ground sends before it is asked; nil: nothing is.
	taker *take.Taker
	now   func() time.Time

	mu sync.Mutex
	// asking holds the queries that are under way for clients, by their keys.
	asking map[string]*asking
}

// asking is a query that is under way. Other clients with the same question wait for it, too.
type asking struct {
	done  chan struct{}
	truth *dns.Msg
	rcode int
	err   error
}

// Name implements the plugin.Handler interface.
func (h *Remember) Name() string { return pluginName }

// ServeDNS implements the plugin.Handler interface.
func (h *Remember) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	key, ok := keyOf(r)
	if !ok {
		return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
	}
	ctx, explained := explain.Begin(ctx, w, r)
	if explained {
		return h.explain(ctx, w, r, key)
	}
	counts := countersOf(metrics.WithServer(ctx))
	if known, state := h.recall(key, h.memory.Get); known != nil {
		switch {
		case state.unasked:
			counts.pushed.Inc()
			pushedUsed.Add(float64(state.bytes))
			h.taker.Use(clientOf(w), known.Question[0])
		case state.stale:
			counts.stale.Inc()
		default:
			counts.fresh.Inc()
		}
		if state.stale {
			h.refresher.want(job{context.WithoutCancel(ctx), h, key, known.Question[0], clientOf(w)})
		}
		return dns.RcodeSuccess, w.WriteMsg(reply(r, known))
	}
	truth, rcode, err := h.ask(ctx, w, r, key)
	if truth == nil {
		return rcode, err
	}
	if writeErr := w.WriteMsg(reply(r, truth)); err == nil {
		err = writeErr
	}
	return rcode, err
}

// keyOf returns the key of a query. False: the response to such a query is not kept.
func keyOf(r *dns.Msg) (store.Key, bool) {
	if r.Opcode != dns.OpcodeQuery || len(r.Question) != 1 || r.Question[0].Qclass != dns.ClassINET {
		return store.Key{}, false
	}
	question := r.Question[0]
	switch question.Qtype {
	case dns.TypeANY, dns.TypeAXFR, dns.TypeIXFR:
		return store.Key{}, false
	}
	wire := make([]byte, 255+4)
	end, err := dns.PackDomainName(dns.CanonicalName(question.Name), wire, 0, nil, false)
	if err != nil {
		return store.Key{}, false
	}
	wire[end], wire[end+1] = byte(question.Qtype>>8), byte(question.Qtype)
	wire[end+2], wire[end+3] = byte(question.Qclass>>8), byte(question.Qclass)
	flags := store.Flags(0)
	if opt := r.IsEdns0(); opt != nil && opt.Do() {
		flags |= store.DO
	}
	if r.CheckingDisabled {
		flags |= store.CD
	}
	return store.Key{Question: wire[:end+4], Flags: flags}, true
}

func clientOf(w dns.ResponseWriter) net.IP {
	address, _, err := net.SplitHostPort(w.RemoteAddr().String())
	if err != nil {
		return nil
	}
	return net.ParseIP(address)
}

// state is that of a response that is served from memory.
type state struct {
	stale bool
	// pushed is true if the ground sent it before anybody asked, and unasked if nobody has asked since.
	pushed, unasked bool
	// age is the time since it came.
	age   time.Duration
	bytes int
}

// recall returns the response that is kept, with its TTLs as of now, nil if there is none to serve. Get is that of the memory, or
// Peek, which leaves no trace.
func (h *Remember) recall(key store.Key, get func(store.Key, []byte) (store.Answer, bool)) (*dns.Msg, state) {
	var room [2048]byte
	kept, ok := get(key, room[:0])
	if !ok {
		return nil, state{}
	}
	is := state{
		pushed: kept.Flags&store.Pushed != 0, unasked: kept.Flags&store.Unasked != 0,
		age: max(0, h.now().Sub(time.Unix(int64(kept.Stored), 0))), bytes: len(kept.Wire),
	}
	now := h.now().Unix()
	m := new(dns.Msg)
	if now >= int64(kept.Until) || now >= int64(kept.Stored)+int64(h.span/time.Second) || m.Unpack(kept.Wire) != nil || len(m.Question) != 1 {
		h.memory.Delete(key)
		return nil, state{}
	}
	// A clock that was set back says nothing about the age.
	if now < int64(kept.Stored) || now >= int64(kept.Expires) {
		if kept.Until == kept.Expires && denies(m) {
			return nil, state{}
		}
		is.stale = true
		setTTL(m, uint32(judge.StaleTTL/time.Second))
		return m, is
	}
	setTTL(m, uint32(int64(kept.Expires)-now))
	return m, is
}

func denies(m *dns.Msg) bool { return m.Rcode != dns.RcodeSuccess || !judge.Answers(m) }

// ask gets the response of the plugins behind, and keeps it. Clients with the same question wait for one query. If the ground sends
// the response unasked meanwhile, they get that one. A client that is answered before the truth comes waits no longer.
func (h *Remember) ask(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, key store.Key) (*dns.Msg, int, error) {
	name := nameOf(key)
	h.mu.Lock()
	query, underWay := h.asking[name]
	if !underWay {
		query = &asking{done: make(chan struct{})}
		h.asking[name] = query
	}
	h.mu.Unlock()
	if !underWay {
		countersOf(metrics.WithServer(ctx)).asked.Inc()
		own := r.Copy()
		go func() {
			truth, rcode, err := h.askNext(ctx, w, own, key, false)
			h.end(name, query, asking{truth: truth, rcode: rcode, err: err})
		}()
	}
	select {
	case <-meanwhile.Missed(ctx):
		return nil, dns.RcodeSuccess, meanwhile.ErrAnswered
	case <-query.done:
		if query.truth == nil {
			return nil, query.rcode, query.err
		}
		return query.truth.Copy(), query.rcode, query.err
	case <-ctx.Done():
		return nil, dns.RcodeServerFailure, ctx.Err()
	}
}

// end gives the clients that wait for a query its result, unless they have one.
func (h *Remember) end(name string, query *asking, result asking) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asking[name] != query {
		return
	}
	delete(h.asking, name)
	query.truth, query.rcode, query.err = result.truth, result.rcode, result.err
	close(query.done)
}

// askNext sends a query to the plugins behind. As the stock cache does, it asks for the AD bit (RFC 6840 section 5.7).
func (h *Remember) askNext(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, key store.Key, refresh bool) (*dns.Msg, int, error) {
	query := r.Copy()
	query.AuthenticatedData = true
	h.taker.Mark(query, clientOf(w), refresh)
	taken := nonwriter.New(w)
	rcode, err := plugin.NextOrFailure(h.Name(), h.Next, ctx, taken, query)
	if taken.Msg == nil {
		return nil, rcode, err
	}
	truth := taken.Msg.Copy()
	truth.Extra = withoutOPT(truth.Extra)
	if state := (request.Request{Req: query}); state.Match(truth) {
		h.learn(key, truth, 0)
	}
	return truth, rcode, err
}

// learn keeps a response, or forgets an earlier one. It gives all records of a response that is kept its TTL. Flags are those
// beside the key's.
func (h *Remember) learn(key store.Key, truth *dns.Msg, flags store.Flags) {
	now := h.now()
	what, ttl := judge.Of(truth, now)
	switch what {
	case judge.Keep, judge.KeepDenial:
		setTTL(truth, uint32(ttl/time.Second))
	case judge.Forget:
		h.memory.Delete(key)
		return
	default:
		return
	}
	expires := now.Add(ttl)
	until := expires
	if what == judge.Keep {
		until = judge.SignedUntil(truth, now, now.Add(max(h.span, ttl)))
	}
	packed := *truth
	packed.Id, packed.Compress = 0, true
	packed.Question = []dns.Question{truth.Question[0]}
	packed.Question[0].Name = dns.CanonicalName(truth.Question[0].Name)
	wire, err := packed.Pack()
	if err != nil || !until.After(now) || !h.memory.Put(store.Answer{
		Stored: uint32(now.Unix()), Expires: uint32(expires.Unix()), Until: uint32(until.Unix()), Flags: key.Flags | flags, Wire: wire,
	}) {
		h.memory.Delete(key)
	}
}

// reply returns the response to r with what truth says. It shares the records.
func reply(r, truth *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(r)
	m.Authoritative, m.RecursionAvailable = truth.Authoritative, truth.RecursionAvailable
	m.Truncated, m.Rcode = truth.Truncated, truth.Rcode
	// AD is for clients that know it (RFC 6840 section 5.8).
	opt := r.IsEdns0()
	m.AuthenticatedData = truth.AuthenticatedData && (r.AuthenticatedData || opt != nil && opt.Do())
	m.Answer, m.Ns, m.Extra = truth.Answer, truth.Ns, slices.Clone(truth.Extra)
	return m
}

func setTTL(m *dns.Msg, ttl uint32) {
	for _, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range section {
			rr.Header().Ttl = ttl
		}
	}
}

func withoutOPT(records []dns.RR) []dns.RR {
	var others []dns.RR
	for _, rr := range records {
		if rr.Header().Rrtype != dns.TypeOPT {
			others = append(others, rr)
		}
	}
	return others
}

func nameOf(key store.Key) string { return string(key.Question) + string(rune(key.Flags)) }
