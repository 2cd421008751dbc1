package browsers

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// BenchmarkTableMemory measures what a full table takes, with the names in it.
func BenchmarkTableMemory(b *testing.B) {
	for range b.N {
		before := heap()
		table := New(within)
		for i := range mostNames {
			client := netip.AddrFrom4([4]byte{10, 0, byte(i / 256 % 16), 1})
			name := fmt.Sprintf("host%d.some-site-with-a-name.example.org.", i)
			table.Arrive(client, name, dns.TypeA, after(time.Duration(i)*ms))
			table.Arrive(client, name, dns.TypeHTTPS, after(time.Duration(i)*ms))
		}
		grown := heap() - before
		b.ReportMetric(float64(grown)/1024/float64(table.Names())*1000, "KiB/1000_names")
	}
}

// BenchmarkFirstVisit measures both queries of a lookup.
func BenchmarkFirstVisit(b *testing.B) {
	table := New(within)
	for i := range b.N {
		name, at := fmt.Sprintf("host%d.example.org.", i%mostNamesOfClient), after(time.Duration(i)*ms)
		table.Arrive(laptop, name, dns.TypeA, at)
		table.Arrive(laptop, name, dns.TypeHTTPS, at)
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
