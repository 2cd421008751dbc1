package longhaul

import (
	"context"
	"hash/maphash"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/cache"

	"example.org/longhaul/coredns-plugin/apart"
	"example.org/longhaul/coredns-plugin/steer"

	"github.com/miekg/dns"
)

const (
	instantNames   = 16384       // names of which is remembered whether the proxy can reach them
	instantAtOnce  = 64          // names whose check is waiting or under way; the answers for further names do not wait
	instantTurns   = 8           // of them on their way: nobody waits for them, and they share the link with what clients wait for
	instantPending = time.Minute // a name whose check is waiting or under way is not checked again
	instantKnown   = time.Hour   // a name whose truth is known is looked at by every query; this only bounds what is remembered
	instantTimeout = 10 * time.Second
)

// instant answers for listed names without waiting for the truth. It is for a proxy that finds the origin by itself: the name
// travels in the Host header or in TLS's server name, so the client needs no other address than the proxy's, and the round
// trip of a query for one is saved. A query for the truth runs in the background. A name that does not exist, or is not to be
// steered, gets the truth from then on. So does every name whose connections the proxy intercepts.
type instant struct {
	alone   *apart.Alone
	family  uint16 // the type of queries that its addresses answer
	seed    maphash.Seed
	names   *cache.Cache[note] // by the hash of a name
	asking  chan struct{}
	turns   chan struct{}
	stopped context.Context
}

// note is what is known of a name, until then.
type note struct {
	truth bool // it gets the truth
	until time.Time
}

func newInstant(r netip.Prefix) *instant {
	family := dns.TypeA
	if r.Addr().Is6() {
		family = dns.TypeAAAA
	}
	return &instant{
		alone: apart.NewAlone(r), family: family,
		seed: maphash.MakeSeed(), names: cache.New[note](instantNames), asking: make(chan struct{}, instantAtOnce),
		turns: make(chan struct{}, instantTurns), stopped: context.Background(),
	}
}

// start ties questions under way to the server's life: it ends when the last of them has.
func (i *instant) start(ctx context.Context, running *sync.WaitGroup) {
	i.stopped = ctx
	running.Add(1)
	go func() {
		defer running.Done()
		<-ctx.Done()
		for range instantAtOnce {
			i.asking <- struct{}{}
		}
	}()
}

func (i *instant) key(name string) uint64 { return maphash.String(i.seed, strings.ToLower(name)) }

// known returns what is noted of name and still holds.
func (i *instant) known(name string) (note, bool) {
	n, ok := i.names.Get(i.key(name))
	return n, ok && time.Now().Before(n.until)
}

func (i *instant) remember(name string, truth bool, hold time.Duration) {
	i.names.Add(i.key(name), note{truth, time.Now().Add(hold)})
}

// addresses returns those of a name, none if the range is full.
func (i *instant) addresses(name string) *steer.Addresses {
	var own steer.Addresses
	if addr, reason := i.alone.Place(name, instantPending); reason == 0 {
		own.Add(addr)
	}
	return &own
}

// answerAtOnce responds to a query for a listed name. It returns nil where only the truth will do: without instant, for a name
// that gets the truth, and for queries that the policy wants the truth for.
func (l *Longhaul) answerAtOnce(w dns.ResponseWriter, query steer.Query) (*dns.Msg, steer.Verdict) {
	if l.instant == nil {
		return nil, 0
	}
	known, ok := l.instant.known(query.Question.Name)
	if ok && known.truth {
		return nil, 0
	}
	own := l.instant.addresses(query.Question.Name)
	if own.Len() == 0 {
		return nil, 0
	}
	answer, verdict := l.policy.Instant(query, own)
	if answer != nil && !ok {
		l.askAside(w, query.Question.Name)
	}
	return answer, verdict
}

// askAside asks the rest of the chain for the addresses of name and notes whether they are steered. Nobody waits for it.
func (l *Longhaul) askAside(w dns.ResponseWriter, name string) {
	i := l.instant
	select {
	case i.asking <- struct{}{}:
	default:
		return // the next query for the name tries again
	}
	i.remember(name, false, instantPending)
	asker := aside{local: w.LocalAddr(), remote: w.RemoteAddr()}
	go func() {
		defer func() { <-i.asking }()
		select {
		case i.turns <- struct{}{}:
			defer func() { <-i.turns }()
		case <-i.stopped.Done():
			return
		}
		ctx, cancel := context.WithTimeout(i.stopped, instantTimeout)
		defer cancel()
		ask := new(dns.Msg).SetQuestion(name, i.family)
		query := queryOf(&asker, ask)
		if _, err := plugin.NextOrFailure(l.Name(), l.Next, ctx, &asker, ask); err != nil || asker.answer == nil {
			return // no resolver responded: that says nothing about the name
		}
		l.noteTruth(query, asker.answer)
	}()
}

// noteTruth remembers whether a name gets the truth, by the true response to a query for its addresses. A resolver that failed
// says nothing about the name: on a crowded link that is its usual response.
func (l *Longhaul) noteTruth(query steer.Query, truth *dns.Msg) {
	if l.instant == nil || query.Question.Qtype != l.instant.family || l.policy.MayValidate(query.Msg) {
		return
	}
	if truth.Rcode != dns.RcodeSuccess && truth.Rcode != dns.RcodeNameError {
		return
	}
	ttl, verdict := l.policy.Steers(query, truth, &l.proxy.all)
	if l.intercepted || verdict != steer.Steered {
		l.instant.remember(query.Question.Name, true, instantKnown)
		return
	}
	l.instant.remember(query.Question.Name, false, time.Duration(max(ttl, 1))*time.Second)
}

// aside takes the answer to a question that no client waits for.
type aside struct {
	local, remote net.Addr
	answer        *dns.Msg
}

func (a *aside) LocalAddr() net.Addr         { return a.local }
func (a *aside) RemoteAddr() net.Addr        { return a.remote }
func (a *aside) WriteMsg(m *dns.Msg) error   { a.answer = m; return nil }
func (a *aside) Write(b []byte) (int, error) { return len(b), nil }
func (a *aside) Close() error                { return nil }
func (a *aside) TsigStatus() error           { return nil }
func (a *aside) TsigTimersOnly(bool)         {}
func (a *aside) Hijack()                     {}
