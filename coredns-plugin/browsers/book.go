package browsers

import (
	"net/netip"
	"time"

	"example.org/longhaul/coredns-plugin/apart"
)

const (
	// TTL is that of a response before the truth is known. No cache keeps such a response (RFC 1035 section 3.2.1), so a
	// forwarder between clients and this server gives it to nobody else. Browsers keep it for a minute all the same.
	TTL uint32 = 0
	// linger is the time after which no client has an address any more. Browsers keep a connection to it for minutes, and
	// some caches of clients keep a response for a minute whatever its TTL.
	linger = 10 * time.Minute
	// mostNames bounds the names with an address, at about 200 bytes each.
	mostNames = 16384
	// mostNamesOfClient bounds those that one client has brought.
	mostNamesOfClient = mostNames / 8
	// mostAddresses bounds the addresses of the range that are in use.
	mostAddresses = 1 << 17
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

	names   map[string]*entry
	taken   []uint64 // a bit for each address
	ends    entry    // before the name that was used longest ago, and behind the one that was used last
	clients map[netip.Addr]*client
}

// client is one that has brought names.
type client struct {
	addr  netip.Addr
	names int
}

// entry is a name with its address. Times are in nanoseconds since 1970, because there are many entries.
type entry struct {
	name         string
	client       *client // who brought it
	before, next *entry  // by the time of use

	used  int64
	waits int64 // until then, lookups of the name wait for the truth
	asked int64 // until then, the truth is on its way

	number  uint32
	truth   [4]byte // the true address; 0.0.0.0 for a name that has none that a client may reach
	settled bool    // the question for the truth has an answer
	absent  bool    // the answer is that there is no such name
}

func newBook(within netip.Prefix) *book {
	within = within.Masked()
	count := min(uint64(1)<<(within.Addr().BitLen()-within.Bits())-2, mostAddresses)
	b := &book{
		within: within, count: count, most: int(min(mostNames, max(1, count/2))),
		names: map[string]*entry{}, taken: make([]uint64, (count+63)/64), clients: map[netip.Addr]*client{},
	}
	b.ends.before, b.ends.next = &b.ends, &b.ends
	return b
}

// judge returns whether a name may have an address now: Instant, Known or Full.
func (b *book) judge(name string, who netip.Addr, now time.Time) Outcome {
	b.forget(now)
	if has := b.names[name]; has != nil {
		if now.UnixNano() < has.waits {
			return Known
		}
		return Instant
	}
	if brought := b.clients[who]; len(b.names) >= b.most || brought != nil && brought.names >= mostNamesOfClient {
		return Full
	}
	return Instant
}

// place returns the address of a name that judge lets have one. Begun: nobody has asked for its truth yet.
func (b *book) place(name string, who netip.Addr, now time.Time) (addr netip.Addr, begun, ok bool) {
	has := b.names[name]
	if has == nil {
		number, free := b.free(uint64(apart.Named(name)))
		if !free {
			return netip.Addr{}, false, false
		}
		has = b.add(name, number, who)
	} else {
		has.unlink()
	}
	has.link(&b.ends)
	has.used = now.UnixNano()
	begun = has.used >= has.asked
	if begun {
		has.asked = now.Add(AskedFor).UnixNano()
	}
	return b.at(has.number), begun, true
}

// free returns the number of an address that no name has, the first one if it can be.
func (b *book) free(first uint64) (uint32, bool) {
	for probe := range uint64(probes) {
		number := (first + probe) % b.count
		if b.taken[number/64]>>(number%64)&1 == 0 {
			return uint32(number), true
		}
	}
	return 0, false
}

func (b *book) add(name string, number uint32, who netip.Addr) *entry {
	brought := b.clients[who]
	if brought == nil {
		brought = &client{addr: who}
		b.clients[who] = brought
	}
	brought.names++
	has := &entry{name: name, number: number, client: brought}
	b.names[name] = has
	b.taken[number/64] |= 1 << (number % 64)
	return has
}

// settle notes what became of the question for a name's truth. It returns the mapping of its address, if the truth is known.
func (b *book) settle(name string, truth Truth, now time.Time) (Mapping, bool) {
	has := b.names[name]
	if has == nil {
		return Mapping{}, false
	}
	has.asked = 0
	if !truth.Known {
		has.waits = now.Add(failedFor).UnixNano()
		return Mapping{}, false
	}
	has.waits, has.settled, has.absent, has.truth = now.Add(knownFor).UnixNano(), true, truth.Absent, [4]byte{}
	if truth.Addr.Is4() {
		has.truth = truth.Addr.As4()
	}
	return b.mapping(has), true
}

// mappings returns those of all names whose truth is known.
func (b *book) mappings() []Mapping {
	var all []Mapping
	for has := b.ends.next; has != &b.ends; has = has.next {
		if has.settled {
			all = append(all, b.mapping(has))
		}
	}
	return all
}

func (b *book) mapping(has *entry) Mapping {
	is := Mapping{Instant: b.at(has.number), Absent: has.absent}
	if has.truth != [4]byte{} {
		is.True = netip.AddrFrom4(has.truth)
	}
	return is
}

// forget removes names whose addresses no client has any more.
func (b *book) forget(now time.Time) {
	for has := b.ends.next; has != &b.ends; has = b.ends.next {
		if now.Add(-linger).UnixNano() < has.used {
			return
		}
		has.unlink()
		delete(b.names, has.name)
		b.taken[has.number/64] &^= 1 << (has.number % 64)
		if has.client.names--; has.client.names == 0 {
			delete(b.clients, has.client.addr)
		}
	}
}

func (b *book) at(number uint32) netip.Addr { return apart.At(b.within, uint64(number)+1) }

// link makes an entry the last one before end.
func (e *entry) link(end *entry) {
	e.before, e.next = end.before, end
	end.before.next, end.before = e, e
}

func (e *entry) unlink() { e.before.next, e.next.before = e.next, e.before }
