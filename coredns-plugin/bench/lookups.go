package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.org/longhaul/coredns-plugin/names"
)

// measureLookups times the name set alone, in this process. It times lookups of listed and unlisted names in random
// order over the whole list, and the reading of a list.
func measureLookups(p plan, listed []string, figures map[string]float64) error {
	text := []byte(strings.Join(listed, "\n") + "\n")
	var list *names.List
	var loads []float64
	for range p.repeats {
		runtime.GC()
		start := time.Now()
		var err error
		if list, err = names.Parse(bytes.NewReader(text), "list", len(text), nil); err != nil {
			return err
		}
		loads = append(loads, time.Since(start).Seconds()*1e6/float64(len(listed)))
	}

	// Two labels below a listed name, and the same for names that are not listed.
	random := rand.New(rand.NewPCG(5, 6))
	queries := make([]string, 1<<18)
	for i := range queries {
		name := listed[random.IntN(len(listed))]
		if i%2 == 1 {
			name = name[:1] + "q" + name[1:]
		}
		queries[i] = "www.a." + name + "."
	}
	var hits, misses []float64
	found := 0
	runtime.LockOSThread() // for threadTime
	defer runtime.UnlockOSThread()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range p.repeats {
		for odd, times := range []*[]float64{&hits, &misses} {
			start := threadTime()
			for i := odd; i < len(queries); i += 2 {
				var k names.Key
				k.Read(queries[i])
				if list.Names.Has(&k) {
					found++
				}
			}
			*times = append(*times, float64((threadTime()-start).Nanoseconds())/float64(len(queries)/2))
		}
	}
	runtime.ReadMemStats(&after)
	if hit := float64(found) / float64(p.repeats*len(queries)); hit < 0.49 || hit > 0.6 {
		return fmt.Errorf("found %.0f %% of the names, expected half", 100*hit)
	}

	figures["lookup_ns"] = (median(hits) + median(misses)) / 2
	figures["lookup_hit_ns"] = median(hits)
	figures["lookup_miss_ns"] = median(misses)
	figures["lookup_allocs"] = float64((after.Mallocs - before.Mallocs) / uint64(p.repeats*len(queries)))
	figures["bytes_per_name"] = float64(list.Names.Bytes()) / float64(list.Names.Len())
	figures["load_seconds_per_million"] = median(loads)
	fmt.Printf("Lookups: hit %.0f ns, miss %.0f ns; %.1f bytes a name; list of %d names read in %.2f s (slowest of %d: %.2f)\n",
		median(hits), median(misses), figures["bytes_per_name"], len(listed), median(loads), p.repeats, slices.Max(loads))
	return nil
}

// threadTime returns the processor time of this thread. Unlike the clock, it stops while other threads run.
func threadTime() time.Duration {
	const thisThread = 1 // RUSAGE_THREAD, which package syscall does not name
	var usage syscall.Rusage
	if err := syscall.Getrusage(thisThread, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
