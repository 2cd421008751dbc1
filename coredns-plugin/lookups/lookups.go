// Package lookups implements a plugin that sends each query as a stream of HTTP/2: gRPC, as CoreDNS serves it. Many queries
// share one connection, and none waits for another. Where streams get no response, the plugins behind it get the query.
package lookups

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const (
	pluginName = "lookups"
	// patience is the longest time for a response by a stream. Clients retry after 5 s.
	patience = 4 * time.Second
	// probing is the time between two probes of streams that got no response. An earlier release at the other end has none.
	probing = time.Minute
)

// Lookups is the plugin's handler.
type Lookups struct {
	Next plugin.Handler

	streams exchanger
	// hedge is the time after which the plugins behind get the query, too. What is on a connection over a link that was down
	// waits for its retransmission timer, and a new connection does not.
	hedge time.Duration
	// slots bounds the streams, so that lookups leave some to pages.
	slots chan struct{}
	now   func() time.Time

	// until is when streams that got no response are probed again, in Unix nanoseconds; 0 while they work.
	until   atomic.Int64
	probes  sync.WaitGroup
	stopped context.Context
}

// exchanger sends a query as a stream, and waits for the response. errCut says that the connection ended first.
type exchanger interface {
	exchange(ctx context.Context, query *dns.Msg) (*dns.Msg, error)
}

// Name implements the plugin.Handler interface.
func (h *Lookups) Name() string { return pluginName }

// ServeDNS implements the plugin.Handler interface.
func (h *Lookups) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) != 1 {
		return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
	}
	if until := h.until.Load(); until != 0 {
		// One query of a minute is sent by both ways. No client waits for a stream that may not be there.
		if now := h.now(); now.UnixNano() >= until && h.until.CompareAndSwap(until, now.Add(probing).UnixNano()) {
			h.probe(r.Copy())
		}
		return reply(w, h.behind(ctx, w, r))
	}
	return h.serve(ctx, w, r)
}

// result is a response, or why there is none.
type result struct {
	m     *dns.Msg
	rcode int
	err   error
}

// reply writes the response of the plugins behind, if there is one.
func reply(w dns.ResponseWriter, got result) (int, error) {
	if got.m == nil {
		return got.rcode, got.err
	}
	ways.WithLabelValues("connection").Inc()
	if err := w.WriteMsg(got.m); got.err == nil {
		got.err = err
	}
	return got.rcode, got.err
}

// serve sends the query as a stream, and by the way behind if there is no response soon.
func (h *Lookups) serve(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience+h.hedge)
	defer cancel()
	byStream, byNext := make(chan result, 1), make(chan result, 1)
	go func() {
		m, err := h.exchange(ctx, r)
		byStream <- result{m: m, err: err}
	}()
	hedge := time.NewTimer(h.hedge)
	defer hedge.Stop()
	asked := false
	next := func() {
		if asked {
			return
		}
		asked = true
		query := r.Copy()
		go func() {
			byNext <- h.behind(ctx, w, query)
		}()
	}
	// Each way brings one result. Without a response, the other way may still bring one.
	noStream, noNext := false, false
	for {
		select {
		case got := <-byStream:
			if got.err == nil {
				ways.WithLabelValues("stream").Inc()
				return got.m.Rcode, w.WriteMsg(got.m)
			}
			if noNext {
				return dns.RcodeServerFailure, got.err
			}
			noStream = true
			next()
		case <-hedge.C:
			next()
		case got := <-byNext:
			if got.m == nil && !noStream && ctx.Err() == nil {
				noNext = true
				continue
			}
			if got.m != nil && got.err == nil && noStream {
				// The other end is there, and takes no streams.
				h.until.Store(h.now().Add(probing).UnixNano())
			}
			return reply(w, got)
		case <-ctx.Done():
			return dns.RcodeServerFailure, ctx.Err()
		}
	}
}

// behind gets the response of the plugins behind. Their idle connection may be gone by now, which a write or the read after it
// finds. So a failure that comes at once is retried once, and the connection is a new one then.
func (h *Lookups) behind(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) result {
	began := h.now()
	got := h.behindOnce(ctx, w, r)
	if got.m == nil && got.err != nil && ctx.Err() == nil && h.now().Sub(began) < h.hedge {
		retries.WithLabelValues("connection").Inc()
		got = h.behindOnce(ctx, w, r)
	}
	return got
}

func (h *Lookups) behindOnce(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) result {
	taken := nonwriter.New(w)
	rcode, err := plugin.NextOrFailure(h.Name(), h.Next, ctx, taken, r)
	return result{taken.Msg, rcode, err}
}

// exchange sends a query as a stream once there is a slot for it. A connection that ended costs one retry.
func (h *Lookups) exchange(ctx context.Context, r *dns.Msg) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h.slots }()
	m, err := h.streams.exchange(ctx, r)
	if errors.Is(err, errCut) && ctx.Err() == nil {
		retries.WithLabelValues("stream").Inc()
		m, err = h.streams.exchange(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	if state := (request.Request{Req: r}); !state.Match(m) {
		return nil, errWrong
	}
	return m, nil
}

// probe sends a query as a stream. If it gets a response, streams are used from then on.
func (h *Lookups) probe(r *dns.Msg) {
	h.probes.Go(func() {
		if _, err := h.exchange(h.stopped, r); err == nil {
			h.until.Store(0)
		}
	})
}
