package main

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// queryMix names a set of queries.
type queryMix string

const (
	queriesA     queryMix = "a"     // A only
	queriesMixed queryMix = "mixed" // A, AAAA and HTTPS of each name, as a browser sends them
)

// Number of names in the queries, half of them listed. They fit the caches of all servers, so the figures show the work
// for each query.
const askedNames = 9000

func (b *bed) writeQueries() error {
	random := rand.New(rand.NewPCG(8, 9))
	var a, mixed []string
	for i := range askedNames {
		from := b.listed
		if i%2 == 1 {
			from = b.other
		}
		name := []string{"", "www.", "img.cdn."}[random.IntN(3)] + from[random.IntN(len(from))]
		a = append(a, name+" A")
		mixed = append(mixed, name+" A", name+" AAAA", name+" HTTPS")
	}
	for mix, lines := range map[queryMix][]string{queriesA: a, queriesMixed: mixed} {
		random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		if err := writeLines(b.path("queries-"+string(mix)), lines, "%s\n"); err != nil {
			return err
		}
	}
	return nil
}

// measureThroughput runs dnsperf on the servers in turn, so that other work of the machine affects all of them.
func measureThroughput(p plan, b *bed, figures map[string]float64) error {
	if err := b.writeQueries(); err != nil {
		return err
	}
	mixes := []queryMix{queriesA, queriesMixed}
	for _, s := range b.servers {
		for _, mix := range mixes {
			if s.absent == "" {
				if _, _, err := dnsperf(b, s, mix, "-n", "2"); err != nil {
					return err
				}
			}
		}
	}
	for round := range p.rounds {
		fmt.Printf("Round %d of %d\n", round+1, p.rounds)
		for _, mix := range mixes {
			// Every other round runs backwards, so that no server always follows the same one.
			for i := range b.servers {
				if round%2 == 1 {
					i = len(b.servers) - 1 - i
				}
				s := b.servers[i]
				if s.absent != "" || mix == queriesMixed && s.program != coredns {
					continue // the peers respond to other types in their own ways: no comparison
				}
				before := s.processorTime()
				qps, lost, err := dnsperf(b, s, mix, "-l", strconv.Itoa(int(p.run/time.Second)))
				if err != nil {
					return err
				}
				s.qps[mix] = append(s.qps[mix], qps)
				s.cpu[mix] = append(s.cpu[mix], (s.processorTime()-before)*1e6/(qps*p.run.Seconds()))
				s.lost += lost
				s.warmRSS = s.residentMiB()
			}
		}
	}
	plain, ours := b.server(plainCoreDNS), b.server(withLonghaul)
	figures["qps_vs_plain_coredns"] = medianRatio(ours.qps[queriesA], plain.qps[queriesA])
	figures["qps_vs_plain_coredns_mixed_types"] = medianRatio(ours.qps[queriesMixed], plain.qps[queriesMixed])
	figures["cpu_vs_plain_coredns"] = medianRatio(ours.cpu[queriesA], plain.cpu[queriesA])
	figures["cpu_vs_plain_coredns_mixed_types"] = medianRatio(ours.cpu[queriesMixed], plain.cpu[queriesMixed])
	figures["cpu_us_per_query"] = median(ours.cpu[queriesA])
	figures["qps"] = median(ours.qps[queriesA])
	figures["ready_seconds"] = ours.ready.Seconds()
	figures["rss_mib"] = ours.rss
	for _, s := range b.servers {
		if s.absent == "" && s != ours && s != plain {
			figures["qps_vs_"+key(s.program)] = medianRatio(ours.qps[queriesA], s.qps[queriesA])
			figures["ready_vs_"+key(s.program)] = ours.ready.Seconds() / s.ready.Seconds()
		}
	}
	if unbound := b.server(unboundRPZ); unbound.absent == "" {
		figures["rss_vs_unbound_rpz"] = ours.rss / unbound.rss
	}
	return nil
}

var (
	qpsLine  = regexp.MustCompile(`Queries per second:\s+([\d.]+)`)
	lostLine = regexp.MustCompile(`Queries lost:\s+(\d+)`)
)

// dnsperf runs the program of that name with eight clients.
func dnsperf(b *bed, s *server, mix queryMix, args ...string) (qps float64, lost int, err error) {
	args = append([]string{"-s", "127.0.0.1", "-p", strconv.Itoa(s.port), "-d", b.path("queries-" + string(mix)), "-c", "8", "-T", "1", "-q", "200"}, args...)
	text, err := pinned(1, "dnsperf", args...).CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("dnsperf %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	found, foundLost := qpsLine.FindSubmatch(text), lostLine.FindSubmatch(text)
	if found == nil || foundLost == nil {
		return 0, 0, fmt.Errorf("cannot read the output of dnsperf:\n%s", text)
	}
	if qps, err = strconv.ParseFloat(string(found[1]), 64); err != nil {
		return 0, 0, err
	}
	lost, err = strconv.Atoi(string(foundLost[1]))
	return qps, lost, err
}
