package browsers

import (
	"container/list"
	"net/netip"
	"time"

	"example.org/longhaul/coredns-plugin/apart"
)

const (
	// TTL is that of a response before the truth is known. A browser believes this long in a name that does not exist.
	TTL = 5 * time.Second
	// linger is the time after which no client has an address any more. Browsers keep a connection to it for minutes, and
	// some caches of clients keep a response for a minute whatever its TTL.
	linger = 10 * time.Minute
	// mostNames bounds the names with an address, at about 400 bytes each.
	mostNames = 16384
	// mostNamesOfClient bounds those that one client has brought.
	mostNamesOfClient = mostNames / 8
	// probes is the number of addresses that are tried for a name. At most half of the range is taken.
	probes = 16

	// knownFor is how long a name whose truth was here gets no address again. Usually the memory has its response.
	knownFor = time.Hour
	// AskedFor is the longest time of the question for a name's truth.
	AskedFor = 30 * time.Second
	// failedFor is how long a name gets no address after its truth could not be had.
	failedFor = 30 * time.Second
)

// book has one address for each name. The name that was used longest ago is the first to go, but never while a client may
// still have its address.
type book struct {
	within netip.Prefix
	count  uint64 // the addresses in use: not the first and the last, which are the network and the broadcast address
	most   int

	names    map[string]*list.Element // of *entry
	taken    map[uint64]*entry
	byUse    *list.List // least recently used first
	ofClient map[netip.Addr]int
}

// entry is a name with its address.
type entry struct {
	name   string
	number uint64
	client netip.Addr // who brought it
	used   time.Time
	// waits: until then, lookups of the name wait for the truth.
	waits time.Time
	// asked: until then, the truth is on its way.
	asked time.Time
	// truth is the true address. Not valid: it is not known, or the name has none that a client may reach.
	truth netip.Addr
	// settled: the question for the truth has an answer.
	settled bool
}

func newBook(within netip.Prefix) *book {
	within = within.Masked()
	count := uint64(1)<<(within.Addr().BitLen()-within.Bits()) - 2
	return &book{
		within: within, count: count, most: int(min(mostNames, max(1, count/2))),
		names: map[string]*list.Element{}, taken: map[uint64]*entry{}, byUse: list.New(), ofClient: map[netip.Addr]int{},
	}
}

// judge returns whether a name may have an address now: Instant, Known or Full.
func (b *book) judge(name string, client netip.Addr, now time.Time) Outcome {
	b.forget(now)
	if at, ok := b.names[name]; ok {
		has := at.Value.(*entry)
		if now.Before(has.waits) {
			return Known
		}
		return Instant
	}
	if len(b.names) >= b.most || b.ofClient[client] >= mostNamesOfClient {
		return Full
	}
	return Instant
}

// place returns the address of a name that judge lets have one. Begun: nobody has asked for its truth yet.
func (b *book) place(name string, client netip.Addr, now time.Time) (addr netip.Addr, begun, ok bool) {
	if at, known := b.names[name]; known {
		has := at.Value.(*entry)
		has.used = now
		b.byUse.MoveToBack(at)
		begun = !now.Before(has.asked)
		if begun {
			has.asked = now.Add(AskedFor)
		}
		return b.at(has.number), begun, true
	}
	first := uint64(apart.Named(name))
	for probe := range uint64(probes) {
		number := (first + probe) % b.count
		if b.taken[number] != nil {
			continue
		}
		has := &entry{name: name, number: number, client: client, used: now, asked: now.Add(AskedFor)}
		b.names[name], b.taken[number] = b.byUse.PushBack(has), has
		b.ofClient[client]++
		return b.at(number), true, true
	}
	return netip.Addr{}, false, false
}

// settle notes what became of the question for a name's truth. It returns the mapping of its address, if the truth is known.
func (b *book) settle(name string, truth Truth, now time.Time) (Mapping, bool) {
	at, ok := b.names[name]
	if !ok {
		return Mapping{}, false
	}
	has := at.Value.(*entry)
	has.asked = time.Time{}
	if !truth.Known {
		has.waits = now.Add(failedFor)
		return Mapping{}, false
	}
	has.waits, has.truth, has.settled = now.Add(knownFor), truth.Addr, true
	return Mapping{b.at(has.number), has.truth}, true
}

// mappings returns those of all names whose truth is known.
func (b *book) mappings() []Mapping {
	var all []Mapping
	for at := b.byUse.Front(); at != nil; at = at.Next() {
		if has := at.Value.(*entry); has.settled {
			all = append(all, Mapping{b.at(has.number), has.truth})
		}
	}
	return all
}

// forget removes names whose addresses no client has any more.
func (b *book) forget(now time.Time) {
	for at := b.byUse.Front(); at != nil; at = b.byUse.Front() {
		has := at.Value.(*entry)
		if now.Before(has.used.Add(TTL + linger)) {
			return
		}
		b.byUse.Remove(at)
		delete(b.names, has.name)
		delete(b.taken, has.number)
		if b.ofClient[has.client]--; b.ofClient[has.client] <= 0 {
			delete(b.ofClient, has.client)
		}
	}
}

func (b *book) at(number uint64) netip.Addr { return apart.At(b.within, number+1) }
