package longhaul

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"

	"example.org/longhaul/coredns-plugin/browsers"
	"example.org/longhaul/coredns-plugin/internal/explain"
	"example.org/longhaul/coredns-plugin/internal/meanwhile"
	"example.org/longhaul/coredns-plugin/names"
	"example.org/longhaul/coredns-plugin/steer"

	"github.com/miekg/dns"
)

// mostSettling bounds the questions for the truth of names that have an address meanwhile. For a further name, the address is
// as good, but nobody learns that the truth is here.
const mostSettling = 1024

// firstVisits answers a browser's first lookup of a name that is on no list before the truth is known. It is for a proxy that
// finds the origin by the name in the request. All other lookups wait for the truth.
type firstVisits struct {
	table *browsers.Table
	// socket is where the packet rules' keeper learns the true addresses; empty: nowhere.
	socket   string
	settling chan struct{}
	stopped  context.Context
}

func newFirstVisits(within netip.Prefix, socket string) *firstVisits {
	return &firstVisits{
		table: browsers.Of(within), socket: socket, settling: make(chan struct{}, mostSettling), stopped: context.Background(),
	}
}

// start ties questions under way to the server's life, and serves the mappings.
func (f *firstVisits) start(ctx context.Context, running *sync.WaitGroup) error {
	f.stopped = ctx
	if f.socket != "" {
		if err := mappings.serve(f.socket, f.table); err != nil {
			return err
		}
	}
	running.Go(func() {
		<-ctx.Done()
		for range mostSettling {
			f.settling <- struct{}{}
		}
	})
	running.Go(func() { every(ctx, time.Second, func() { instantNamesNow.Set(float64(f.table.Names())) }) })
	return nil
}

// asker is a query for a name that is on no list.
type asker struct {
	l   *Longhaul
	ctx context.Context
	w   dns.ResponseWriter
	r   *dns.Msg
	// question is a copy, because plugins further on may rename the message's own in place.
	question dns.Question
	wait     *browsers.Wait
	// alone: it has no partner so far, and is not counted yet.
	alone bool
	// explained: a program of this machine asks why, maybe without a wish for recursion.
	explained bool
}

// serveUnlisted serves a query for the addresses or HTTPS records of a name that is on no list. Most of them have a remembered
// response, so all but little waits until the memory says that it has none.
func (l *Longhaul) serveUnlisted(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if l.firstVisits == nil {
		return plugin.NextOrFailure(l.Name(), l.Next, ctx, w, r)
	}
	ctx, explained := explain.Begin(ctx, w, r)
	is := &asker{l: l, ctx: ctx, w: w, r: r, question: r.Question[0], explained: explained}
	if explained {
		return is.explain()
	}
	rcode, err := plugin.NextOrFailure(l.Name(), l.Next, meanwhile.With(ctx, is), w, r)
	if errors.Is(err, meanwhile.ErrAnswered) {
		is.count(browsers.Instant)
		query := queryOf(w, r)
		query.Question = is.question
		return dns.RcodeSuccess, w.WriteMsg(steer.Meanwhile(query, is.wait.Addr(), browsers.TTL))
	}
	if is.alone {
		is.count(browsers.Alone)
	}
	return rcode, err
}

// Missed implements the meanwhile.Asker interface.
func (is *asker) Missed() <-chan struct{} {
	if outcome := is.judge(); outcome != browsers.Instant {
		is.count(outcome)
		return nil
	}
	arrival := is.l.firstVisits.table.Arrive(sourceOf(is.w.RemoteAddr()), is.question.Name, is.question.Qtype, time.Now())
	if arrival.Begun {
		is.l.settle(is.ctx, is.w, is.question.Name)
	}
	if arrival.Wait == nil {
		is.count(arrival.Outcome)
		return nil
	}
	is.wait, is.alone = arrival.Wait, true
	return arrival.Wait.Ready()
}

// judge returns what the rules say of the query.
func (is *asker) judge() browsers.Outcome {
	scope, bypassed := is.l.bypasses(is.w, is.r)
	_, left := is.l.proxy.now()
	var key names.Key
	key.Read(is.question.Name)
	return browsers.Lookup{
		Name: is.question.Name,
		// No packet rule leads what this host sends to the proxy.
		Bypassed:  bypassed || scope != nil || sourceOf(is.w.RemoteAddr()).IsLoopback() && !is.explained,
		Excepted:  is.l.lists.excepted(&key),
		Down:      left != 0,
		Validates: is.l.policy.MayValidate(is.r) || !is.r.RecursionDesired && !is.explained,
	}.Judge()
}

func (is *asker) count(outcome browsers.Outcome) {
	is.l.counts.of(metrics.WithServer(is.ctx)).browsers[outcome].Inc()
}

// truthOf reads a response to a query for addresses, nil if there is none.
func truthOf(answer *dns.Msg, err error) browsers.Truth {
	if err != nil || answer == nil || answer.Rcode != dns.RcodeSuccess && answer.Rcode != dns.RcodeNameError {
		return browsers.Truth{}
	}
	return browsers.Truth{Known: true, Addr: steer.FirstPublic(answer), Absent: answer.Rcode == dns.RcodeNameError}
}

// explain responds with the truth, and says what a browser's first lookup of the name gets.
func (is *asker) explain() (int, error) {
	outcome := is.judge()
	truth, rcode, err := is.l.ask(is.ctx, is.w, is.r)
	if truth == nil {
		return rcode, err
	}
	text := "unlisted: no list has the name"
	if outcome == browsers.Instant {
		text += ", and " + outcome.Meaning()
	} else {
		text += ", and a browser's first lookup waits for the true response (" + outcome.String() + "): " + outcome.Meaning()
	}
	if writeErr := is.w.WriteMsg(steer.ExplainedAs(truth, dns.ExtendedErrorCodeOther, text)); err == nil {
		err = writeErr
	}
	return rcode, err
}

// settle asks the rest of the chain for the addresses of a name that has one of its own meanwhile, and notes when they are
// here. The client's query for them is on its way, and the memory behind lets this one wait for it.
func (l *Longhaul) settle(ctx context.Context, w dns.ResponseWriter, name string) {
	f := l.firstVisits
	select {
	case f.settling <- struct{}{}:
	default:
		return
	}
	asked := aside{local: w.LocalAddr(), remote: w.RemoteAddr()}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), browsers.AskedFor)
	go func() {
		defer func() { <-f.settling }()
		defer cancel()
		defer context.AfterFunc(f.stopped, cancel)()
		_, err := plugin.NextOrFailure(l.Name(), l.Next, ctx, &asked, new(dns.Msg).SetQuestion(name, dns.TypeA))
		f.table.Settle(name, truthOf(asked.answer, err), time.Now())
	}()
}
