package browsers

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
)

var (
	within = netip.MustParsePrefix("198.18.0.0/15")
	laptop = netip.MustParseAddr("192.0.2.10")
	phone  = netip.MustParseAddr("192.0.2.11")
	start  = time.Unix(1_800_000_000, 0)
)

func after(d time.Duration) time.Time { return start.Add(d) }

const ms = time.Millisecond

// ready returns the address that a query is answered with now, none if it waits.
func ready(a Arrival) netip.Addr {
	if a.Wait == nil {
		return netip.Addr{}
	}
	select {
	case <-a.Wait.Ready():
		return a.Wait.Addr()
	default:
		return netip.Addr{}
	}
}

// visited returns the address of a browser's lookup.
func visited(table *Table, client netip.Addr, name string, at time.Time) netip.Addr {
	table.Arrive(client, name, dns.TypeA, at)
	return ready(table.Arrive(client, name, dns.TypeHTTPS, at))
}

func TestAnAQueryAndAnHTTPSQueryMakeAPairInEitherOrder(t *testing.T) {
	for _, order := range [][]uint16{
		{dns.TypeA, dns.TypeHTTPS, dns.TypeAAAA},
		{dns.TypeHTTPS, dns.TypeA, dns.TypeAAAA},
		{dns.TypeAAAA, dns.TypeA, dns.TypeHTTPS},
		{dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS},
	} {
		table := New(within)
		var all []Arrival
		for i, qtype := range order {
			all = append(all, table.Arrive(laptop, "www.example.org.", qtype, after(time.Duration(i)*10*ms)))
		}
		begun := 0
		for i, one := range all {
			if addr := ready(one); !within.Contains(addr) || addr != ready(all[0]) {
				t.Errorf("%v: query %d gets %v", order, i, addr)
			}
			if one.Begun {
				begun++
			}
		}
		if begun != 1 {
			t.Errorf("%v: the truth is asked for %d times", order, begun)
		}
	}
}

func TestWhatIsNoBrowsersLookupWaits(t *testing.T) {
	for what, second := range map[string]struct {
		client netip.Addr
		name   string
		qtype  uint16
		at     time.Duration
	}{
		"an AAAA query": {laptop, "www.example.org.", dns.TypeAAAA, ms},
		"an A query":    {laptop, "www.example.org.", dns.TypeA, ms},
		"later":         {laptop, "www.example.org.", dns.TypeHTTPS, Together + ms},
		"other client":  {phone, "www.example.org.", dns.TypeHTTPS, ms},
		"other name":    {laptop, "img.example.org.", dns.TypeHTTPS, ms},
	} {
		table := New(within)
		a := table.Arrive(laptop, "www.example.org.", dns.TypeA, start)
		b := table.Arrive(second.client, second.name, second.qtype, after(second.at))
		if ready(a).IsValid() || ready(b).IsValid() || a.Outcome != Alone || b.Outcome != Alone || table.Names() != 0 {
			t.Errorf("%s: %v, %v", what, a, b)
		}
	}
}

func TestAProgramsQueryBehindABrowsersIsNotAnsweredByIt(t *testing.T) {
	table := New(within)
	first := visited(table, laptop, "www.example.org.", start)
	program := table.Arrive(laptop, "www.example.org.", dns.TypeA, after(ms))
	if ready(program).IsValid() || program.Outcome != Alone {
		t.Errorf("the program gets %v", ready(program))
	}
	// A second tab sends both queries, and the program's query is one of a pair then, as it comes from the same client.
	if again := ready(table.Arrive(laptop, "www.example.org.", dns.TypeHTTPS, after(Together+2*ms))); again.IsValid() {
		t.Errorf("an HTTPS query long behind gets %v", again)
	}
	if again := visited(table, phone, "www.example.org.", after(3*ms)); again != first {
		t.Errorf("another browser gets %v, not %v", again, first)
	}
}

func TestFromTheTruthOnEveryLookupWaitsForIt(t *testing.T) {
	for known, hold := range map[bool]time.Duration{true: knownFor, false: failedFor} {
		table := New(within)
		visited(table, laptop, "www.example.org.", start)
		table.Settle("WWW.example.org.", Truth{Known: known}, after(time.Second))
		if a := table.Arrive(laptop, "www.example.org.", dns.TypeA, after(2*time.Second)); a.Outcome != Known || a.Wait != nil {
			t.Errorf("known %v: %v", known, a)
		}
		if !visited(table, laptop, "img.example.org.", after(2*time.Second)).IsValid() {
			t.Error("another name waits")
		}
		if !visited(table, laptop, "www.example.org.", after(time.Second+hold+ms)).IsValid() {
			t.Errorf("known %v: still waits", known)
		}
	}
}

func TestAnAddressHasOneNameUntilNoClientHasIt(t *testing.T) {
	table := New(netip.MustParsePrefix("198.18.0.0/28")) // 14 addresses, 7 names
	of := map[netip.Addr]string{}
	for i := range 7 {
		name := fmt.Sprintf("h%d.example.org.", i)
		addr := visited(table, laptop, name, after(time.Duration(i)*time.Second))
		if other, taken := of[addr]; taken || !addr.IsValid() {
			t.Fatalf("%s and %s have %v", name, other, addr)
		}
		of[addr] = name
	}
	late := table.Arrive(laptop, "late.example.org.", dns.TypeA, after(8*time.Second))
	if late.Outcome != Full || late.Wait != nil {
		t.Errorf("one more name: %v", late)
	}
	// The first name is used again, so the second one is the first to go.
	first := visited(table, phone, "h0.example.org.", after(linger-ms))
	if of[first] != "h0.example.org." {
		t.Errorf("h0 has %v", first)
	}
	if addr := visited(table, laptop, "late.example.org.", after(linger+time.Second-ms)); addr.IsValid() {
		t.Errorf("an address that a client may have is %v's", addr)
	}
	addr := visited(table, laptop, "late.example.org.", after(linger+time.Second))
	if !addr.IsValid() || of[addr] != "h1.example.org." && of[addr] != "" {
		t.Errorf("late has %v of %s", addr, of[addr])
	}
}

func TestTheSameNameHasTheSameAddressAfterARestart(t *testing.T) {
	if one, two := visited(New(within), laptop, "www.example.org.", start), visited(New(within), phone, "www.EXAMPLE.org.", start); one != two {
		t.Errorf("%v and %v", one, two)
	}
}

func TestOneClientCannotTakeAllAddresses(t *testing.T) {
	table := New(within)
	for i := range mostNames {
		visited(table, laptop, fmt.Sprintf("h%d.example.org.", i), after(time.Duration(i)*ms))
	}
	if names := table.Names(); names != mostNamesOfClient {
		t.Errorf("one client has %d names", names)
	}
	if !visited(table, phone, "www.example.org.", after(time.Minute)).IsValid() {
		t.Error("another client has none")
	}
}

func TestPairsAreBoundedAndForgotten(t *testing.T) {
	table := New(within)
	for i := range mostPairsOfClient + 9 {
		table.Arrive(laptop, fmt.Sprintf("h%d.example.org.", i), dns.TypeA, start)
	}
	if len(table.pairs.of) != mostPairsOfClient {
		t.Errorf("%d pairs", len(table.pairs.of))
	}
	if !visited(table, phone, "www.example.org.", start).IsValid() {
		t.Error("another client waits")
	}
	table.Arrive(laptop, "www.example.org.", dns.TypeA, after(time.Second))
	if len(table.pairs.of) != 1 || len(table.pairs.ofClient) != 1 {
		t.Errorf("%d pairs of %d clients are left", len(table.pairs.of), len(table.pairs.ofClient))
	}
}

func TestAReloadKeepsTheTable(t *testing.T) {
	before, after := Of(within), Of(within)
	if before != after || before == Of(netip.MustParsePrefix("198.18.0.0/16")) {
		t.Error("a table is one of its range")
	}
}

func TestFollowersGetTheTruthOfEachAddress(t *testing.T) {
	table := New(within)
	one, two := visited(table, laptop, "one.example.org.", start), visited(table, laptop, "two.example.org.", start)
	visited(table, laptop, "three.example.org.", start)
	server := netip.MustParseAddr("203.0.113.1")
	table.Settle("one.example.org.", Truth{Known: true, Addr: server}, start)
	known, updates, leave := table.Follow()
	if len(known) != 1 || known[0] != (Mapping{Instant: one, True: server}) {
		t.Errorf("known: %v", known)
	}
	table.Settle("two.example.org.", Truth{Known: true, Absent: true}, start)
	table.Settle("three.example.org.", Truth{}, start)
	if got := <-updates; got != (Mapping{Instant: two, Absent: true}) {
		t.Errorf("update: %v", got)
	}
	leave()
	if more, open := <-updates; open {
		t.Errorf("a name without a truth: %v", more)
	}
	// One that takes nothing begins anew, and holds nobody up.
	_, slow, leaveSlow := table.Follow()
	defer leaveSlow()
	for range mostUpdates + 1 {
		table.Settle("one.example.org.", Truth{Known: true, Addr: server}, start)
	}
	taken := 0
	for range slow {
		taken++
	}
	if taken != mostUpdates || len(table.followers) != 0 {
		t.Errorf("%d updates, %d followers", taken, len(table.followers))
	}
}
