package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// A rate well below the capacity of a server on one processor: the figure is how long a query waits, not how many fit.
const (
	latencyQPS     = 4000
	latencyClients = 4
)

// measureReload sends queries at a steady rate. Phases alternate: the list stays as it is, or it is replaced over and
// over.
func measureReload(p plan, b *bed, figures map[string]float64) error {
	lists, err := prepareLists(b)
	if err != nil {
		return err
	}
	swap := &replacer{b: b, lists: lists}
	for _, s := range b.servers {
		s.stop()
	}
	// A separate server that runs on all processors, as operators run it. The server of the throughput measurement has
	// one.
	ours := *b.server(withLonghaul)
	ours.name, ours.unpinned = "CoreDNS + longhaul, reloading", true
	b.servers = append(b.servers, &ours)
	defer func() { b.servers = b.servers[:len(b.servers)-1] }() // it has no row in the table
	if err := ours.start(b); err != nil {
		return err
	}
	defer ours.stop()

	var steadyP99, reloadP99 []float64
	reloads, lost, lostSteady := 0, 0, 0
	for round := range p.rounds + 1 {
		steady, err := askSteadily(ours.port, b, p.phase)
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(context.Background())
		var times int
		var swapErr error
		var swapping sync.WaitGroup
		swapping.Go(func() { times, swapErr = swap.run(ctx) })
		reloading, err := askSteadily(ours.port, b, p.phase)
		stop()
		swapping.Wait()
		if err := errors.Join(err, swapErr); err != nil {
			return err
		}
		fmt.Printf("%d queries/s, microseconds p50/p90/p99/p99.9: steady %s, during %d replacements of the list %s; %d without a response\n",
			latencyQPS, steady, times, reloading, reloading.errors)
		if round == 0 {
			continue // the cache was empty
		}
		steadyP99, reloadP99 = append(steadyP99, steady.percentile(99)), append(reloadP99, reloading.percentile(99))
		reloads += times
		lost += reloading.errors
		lostSteady += steady.errors
	}
	figures["p99_during_reload_vs_steady"] = medianRatio(reloadP99, steadyP99)
	figures["p99_steady_us"] = median(steadyP99)
	figures["errors_during_reload"] = float64(lost)
	figures["errors_steady"] = float64(lostSteady) // not 0: the machine had no time for the server or the clients
	figures["rss_after_reloads_mib"] = ours.residentMiB()
	log, err := os.ReadFile(filepath.Join(ours.dir, "log"))
	if err != nil {
		return err
	}
	read := bytes.Count(log, []byte(" changed: ")) // a busy machine leaves it no time to read each one
	if read == 0 {
		return fmt.Errorf("the server read none of %d changed lists:\n%s", reloads, log)
	}
	figures["reloads"] = float64(read)
	fmt.Printf("%d replacements: %.0f MiB at first, %.0f at last\n", reloads, ours.rss, ours.residentMiB())
	return nil
}

// prepareLists writes two more lists, each without another name, so that a change costs no work during the measurement.
func prepareLists(b *bed) (paths []string, err error) {
	for i := range 2 {
		path := b.path(fmt.Sprintf("list.%d", i))
		if err := writeLines(path, slices.Delete(slices.Clone(b.listed), i, i+1), "%s\n"); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// replacer replaces the server's list by two other lists in turn.
type replacer struct {
	b     *bed
	lists []string
	next  int // continues across phases: renaming a file over another link to itself changes nothing
}

// run replaces the list until ctx ends, as a program does that writes another file and renames it. It waits until the
// server may have read the last list.
func (r *replacer) run(ctx context.Context) (times int, err error) {
	for ; ctx.Err() == nil; times++ {
		if err := os.Link(r.lists[r.next%len(r.lists)], r.b.path("list.new")); err != nil {
			return times, err
		}
		if err := os.Rename(r.b.path("list.new"), r.b.path("list")); err != nil {
			return times, err
		}
		r.next++
		select {
		case <-ctx.Done():
		case <-time.After(2 * reloadEvery):
		}
	}
	return times, nil
}

// latencies holds the latencies of one phase, in microseconds.
type latencies struct {
	us     []float64
	errors int
}

func (l *latencies) percentile(p float64) float64 {
	if len(l.us) == 0 {
		return 0
	}
	return l.us[min(int(p/100*float64(len(l.us))), len(l.us)-1)]
}

func (l *latencies) String() string {
	return fmt.Sprintf("%.0f/%.0f/%.0f/%.0f", l.percentile(50), l.percentile(90), l.percentile(99), l.percentile(99.9))
}

// askSteadily sends queries at latencyQPS, on time even if earlier ones have no response yet.
func askSteadily(port int, b *bed, d time.Duration) (*latencies, error) {
	all := &latencies{}
	var mu sync.Mutex
	var clients sync.WaitGroup
	var failed error
	for i := range latencyClients {
		clients.Go(func() {
			us, lost, err := askFrom(port, b, d, i)
			mu.Lock()
			defer mu.Unlock()
			all.us = append(all.us, us...)
			all.errors += lost
			if err != nil {
				failed = err
			}
		})
	}
	clients.Wait()
	slices.Sort(all.us)
	return all, failed
}

func askFrom(port int, b *bed, d time.Duration, client int) (us []float64, lost int, err error) {
	conn, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = conn.Close() }()
	const interval = time.Second * latencyClients / latencyQPS
	count := int(d / interval)
	// The ID of query i is its low 16 bits. At this rate, its response arrives long before the ID is used again.
	sent := make([]time.Time, count)
	took := make([]time.Duration, count)
	var mu sync.Mutex
	received := make(chan struct{})
	go func() {
		defer close(received)
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			now := time.Now()
			if n < 12 || buf[3]&0xf != dns.RcodeSuccess || buf[7] == 0 {
				continue // an error or an empty answer section: counts as lost
			}
			mu.Lock()
			id := int(buf[0])<<8 | int(buf[1])
			for i := id; i < count; i += 1 << 16 {
				if took[i] == 0 && !sent[i].IsZero() {
					took[i] = now.Sub(sent[i])
					break
				}
			}
			mu.Unlock()
		}
	}()
	start := time.Now()
	for i := range count {
		from := b.listed
		if i%2 == 1 {
			from = b.other
		}
		q := new(dns.Msg).SetQuestion(dns.Fqdn(from[(i/2*latencyClients+client)%1000+2000]), dns.TypeA)
		q.Id = uint16(i)
		packet, err := q.Pack()
		if err != nil {
			return nil, 0, err
		}
		time.Sleep(time.Until(start.Add(time.Duration(i) * interval)))
		mu.Lock()
		sent[i] = time.Now()
		mu.Unlock()
		if _, err := conn.Write(packet); err != nil {
			return nil, 0, err
		}
	}
	time.Sleep(time.Second)
	_ = conn.Close()
	<-received
	for i := range count {
		if took[i] == 0 {
			lost++
		} else {
			us = append(us, float64(took[i].Nanoseconds())/1000)
		}
	}
	return us, lost, nil
}
