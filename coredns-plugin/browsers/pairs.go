package browsers

import (
	"container/list"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

const (
	// Together is the longest time between the A query and the HTTPS query of one lookup. Chromium sends them within 1 ms, and
	// Firefox from two threads. Nobody waits for this time: a query without its partner waits for the truth, as it did before.
	Together = 50 * time.Millisecond
	// mostPairs bounds the lookups that are looked at now.
	mostPairs = 4096
	// mostPairsOfClient bounds those of one client.
	mostPairsOfClient = mostPairs / 8
)

// Wait is a query that waits for the truth, or for its partner.
type Wait struct {
	ready chan struct{}
	addr  netip.Addr // of the name, when ready is closed
}

// Ready is closed when the query may be answered.
func (w *Wait) Ready() <-chan struct{} { return w.ready }

// Addr is the address of the name, when Ready is closed.
func (w *Wait) Addr() netip.Addr { return w.addr }

func newWait() *Wait { return &Wait{ready: make(chan struct{})} }

// visit is who asks for what.
type visit struct {
	client netip.Addr
	name   string
}

// pair is what one client asked lately about one name.
type pair struct {
	visit
	at       time.Time // of the last query
	a, https time.Time // of the queries that have no partner yet; zero: there is none
	waiting  *Wait     // of the queries that wait now
	answered *Wait     // of the last A query that found its partner, and of what came with it
	paired   time.Time
}

// pairs are those of the last moment, the oldest first.
type pairs struct {
	of       map[visit]*list.Element // of *pair
	byTime   *list.List
	ofClient map[netip.Addr]int
}

func newPairs() pairs {
	return pairs{of: map[visit]*list.Element{}, byTime: list.New(), ofClient: map[netip.Addr]int{}}
}

// arrive notes a query. It returns nil if there are too many.
func (p *pairs) arrive(who visit, qtype uint16, now time.Time) *pair {
	p.forget(now)
	at, ok := p.of[who]
	if !ok {
		if len(p.of) >= mostPairs || p.ofClient[who.client] >= mostPairsOfClient {
			return nil
		}
		at = p.byTime.PushBack(&pair{visit: who, waiting: newWait()})
		p.of[who] = at
		p.ofClient[who.client]++
	}
	p.byTime.MoveToBack(at)
	is := at.Value.(*pair)
	is.at = now
	switch qtype {
	case dns.TypeA:
		is.a = now
	case dns.TypeHTTPS:
		is.https = now
	}
	return is
}

// complete returns true if an A query and an HTTPS query came together.
func (p *pair) complete() bool {
	return !p.a.IsZero() && !p.https.IsZero() && p.a.Sub(p.https).Abs() <= Together
}

// answer lets the queries that wait be answered with an address. Each query has one partner: the next A query is another
// lookup, maybe of another program.
func (p *pair) answer(addr netip.Addr, now time.Time) *Wait {
	p.answered, p.paired = p.waiting, now
	p.waiting, p.a, p.https = newWait(), time.Time{}, time.Time{}
	p.answered.addr = addr
	close(p.answered.ready)
	return p.answered
}

// wait returns what a query without a partner waits for. What comes just behind a pair belongs to it, but for an A query.
func (p *pair) wait(qtype uint16, now time.Time) *Wait {
	if qtype != dns.TypeA && p.answered != nil && now.Sub(p.paired) <= Together {
		return p.answered
	}
	return p.waiting
}

// forget removes what came too long ago to have a partner.
func (p *pairs) forget(now time.Time) {
	for at := p.byTime.Front(); at != nil; at = p.byTime.Front() {
		is := at.Value.(*pair)
		if now.Sub(is.at) <= Together {
			return
		}
		p.byTime.Remove(at)
		delete(p.of, is.visit)
		if p.ofClient[is.client]--; p.ofClient[is.client] <= 0 {
			delete(p.ofClient, is.client)
		}
	}
}
