// Command bench measures the plugin beside its peers and writes a table and figures: go run ./bench [-quick] [-out FILE]
//
// README.md in this folder explains the figures, and reports the attempts and their results.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// plan holds the sizes and durations of a run.
type plan struct {
	names   int           // names on the list
	rounds  int           // interleaved runs of each server
	run     time.Duration // duration of one of them
	phase   time.Duration // duration of a latency phase; as many have reloads as have none
	repeats int           // repetitions of the micro measurements
}

var (
	full  = plan{names: 1_000_000, rounds: 7, run: 6 * time.Second, phase: 5 * time.Second, repeats: 7}
	quick = plan{names: 1_000_000, rounds: 1, run: 2 * time.Second, phase: 3 * time.Second, repeats: 2}
)

// A goal is the bound of a figure, in the form that integration/results/goals reads.
type goal struct {
	Figure  string  `json:"figure"`
	Bound   float64 `json:"bound"`
	AtLeast bool    `json:"at_least"`
}

var goals = []goal{
	{"qps_vs_plain_coredns", 0.97, true},
	{"lookup_ns", 250, false},
	{"lookup_allocs", 0, false},
	{"bytes_per_name", 30, false},
	{"load_seconds_per_million", 0.7, false},
	{"p99_during_reload_vs_steady", 1.2, false},
	{"errors_during_reload", 0, false},
	{"rss_vs_unbound_rpz", 0.1, false},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	isQuick := flag.Bool("quick", os.Getenv("QUICK") != "", "run one short round, to see that everything works; QUICK=1 does the same")
	out := flag.String("out", filepath.Join("..", "target", "bench", "dns.json"), "`file` for the figures")
	corpora := flag.String("corpora", filepath.Join("..", "..", "shared", "corpora", "domains"), "`folder` of real domain names for the list; without it, names are invented")
	only := flag.String("only", "", "comma-separated `peers` to measure, all by default")
	flag.Parse()
	p := full
	if *isQuick {
		p = quick
	}
	if err := bench(p, *corpora, *only, *out); err != nil {
		log.Fatal(err)
	}
}

func bench(p plan, corpora, only, out string) error {
	dir, err := os.MkdirTemp("", "longhaul-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	fmt.Printf("Making a list of %d names\n", p.names)
	listed, other, err := makeNames(corpora, p.names)
	if err != nil {
		return err
	}
	figures := map[string]float64{}
	if err := measureLookups(p, listed, figures); err != nil {
		return err
	}

	b, err := newBed(dir, listed, other)
	if err != nil {
		return err
	}
	defer b.stop()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		b.stop()
		_ = os.RemoveAll(dir)
		os.Exit(1)
	}()
	if err := b.startAll(only); err != nil {
		return err
	}
	if err := measureThroughput(p, b, figures); err != nil {
		return err
	}
	if err := measureReload(p, b, figures); err != nil {
		return err
	}
	printTable(b)
	return writeFigures(figures, out)
}

func printTable(b *bed) {
	fmt.Println()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "server\tready s\tRSS MiB\twarm MiB\tA qps: median (lowest-highest)\tA+AAAA+HTTPS qps\tlost")
	for _, s := range b.servers {
		if s.absent != "" {
			fmt.Fprintf(w, "%s\tabsent: %s\n", s.name, s.absent)
			continue
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.0f\t%.0f\t%s\t%s\t%d\n", s.name, s.ready.Seconds(), s.rss, s.warmRSS, spread(s.qps[queriesA]), spread(s.qps[queriesMixed]), s.lost)
	}
	_ = w.Flush()
}

func spread(qps []float64) string {
	if len(qps) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f (%.0f-%.0f)", median(qps), slices.Min(qps), slices.Max(qps))
}

func writeFigures(figures map[string]float64, out string) error {
	names := make([]string, 0, len(figures))
	for name := range figures {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Println()
	for _, name := range names {
		fmt.Printf("%-40s %.4g\n", name, figures[name])
	}
	text, err := json.MarshalIndent(map[string]any{"figures": figures, "goals": goals}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

// median returns 0 if there are no numbers.
func median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// medianRatio returns the median over rounds of a/b. Both numbers come from the same round, so a disturbance slows
// both.
func medianRatio(a, b []float64) float64 {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, a[i]/b[i])
	}
	return median(ratios)
}

func key(name string) string {
	return strings.NewReplacer(" ", "_", "-", "_", "+", "").Replace(strings.ToLower(name))
}
