package remember

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/metrics"

	"example.org/longhaul/coredns-plugin/internal/judge"
	"example.org/longhaul/coredns-plugin/internal/nobody"
	"example.org/longhaul/coredns-plugin/remember/store"

	"github.com/miekg/dns"
)

const (
	// gather is how long the first refresh waits for others, so that those of a page leave together.
	gather = 20 * time.Millisecond
	// atOnce bounds the refreshes on their way. Without streams, each takes a connection of the pair.
	atOnce = 16
	// waiting bounds the refreshes that wait. For further names, the next query tries again.
	waiting = 4096
	// recheck is the time after a failed refresh in which there is no other (RFC 8767 section 5 suggests 30 s).
	recheck = 30 * time.Second
	// patience is the longest time of a refresh.
	patience = 10 * time.Second
	// udpBytes is what a refresh says that it takes in UDP (DNS flag day 2020).
	udpBytes = 1232
)

// refresher queries stale names again, each once at a time.
type refresher struct {
	jobs chan job
	now  func() time.Time

	mu sync.Mutex
	// under holds the time before which a key is not refreshed again. Zero: it waits or is under way.
	under map[string]time.Time
}

type job struct {
	ctx      context.Context
	h        *Remember
	key      store.Key
	question dns.Question
	// client is the one whose query found the response stale.
	client net.IP
}

func newRefresher(now func() time.Time) *refresher {
	return &refresher{jobs: make(chan job, waiting), now: now, under: map[string]time.Time{}}
}

// want lets a response be refreshed soon.
func (r *refresher) want(j job) {
	name := nameOf(j.key)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if until, ok := r.under[name]; ok && (until.IsZero() || now.Before(until)) {
		return
	}
	if len(r.under) >= 2*waiting {
		for other, until := range r.under {
			if !until.IsZero() && !now.Before(until) {
				delete(r.under, other)
			}
		}
		if len(r.under) >= 2*waiting {
			return
		}
	}
	select {
	case r.jobs <- j:
		r.under[name] = time.Time{}
	default:
	}
}

// run refreshes until ctx ends.
func (r *refresher) run(ctx context.Context) {
	turns := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		var batch []job
		select {
		case first := <-r.jobs:
			batch = append(batch, first)
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(gather):
		case <-ctx.Done():
			return
		}
		for range len(r.jobs) {
			batch = append(batch, <-r.jobs)
		}
		for _, j := range batch {
			select {
			case turns <- struct{}{}:
			case <-ctx.Done():
				return
			}
			running.Go(func() {
				defer func() { <-turns }()
				r.refresh(ctx, j)
			})
		}
	}
}

func (r *refresher) refresh(stopped context.Context, j job) {
	ctx, cancel := context.WithTimeout(j.ctx, patience)
	defer cancel()
	defer context.AfterFunc(stopped, cancel)()
	counts := countersOf(metrics.WithServer(j.ctx))
	counts.refreshed.Inc()
	truth, _, err := j.h.askNext(ctx, nobody.Writer{Client: j.client}, queryFor(j.key, j.question), j.key, true)
	known := false
	if err == nil && truth != nil {
		what, _ := judge.Of(truth, j.h.now())
		known = what != judge.Pass
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known {
		delete(r.under, nameOf(j.key))
		return
	}
	counts.failed.Inc()
	r.under[nameOf(j.key)] = r.now().Add(recheck)
}

// queryFor returns the query whose response has the key.
func queryFor(key store.Key, question dns.Question) *dns.Msg {
	query := new(dns.Msg).SetQuestion(question.Name, question.Qtype)
	query.CheckingDisabled = key.Flags&store.CD != 0
	query.SetEdns0(udpBytes, key.Flags&store.DO != 0)
	return query
}
