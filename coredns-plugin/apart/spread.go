package apart

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// mostSpread bounds the servers with an address, at about 100 bytes each.
	mostSpread = 65536
	// probes is the number of addresses that are tried for a server. In a range that is half taken, one in 2^16 servers finds
	// none.
	probes = 16
	// longestSuffix bounds the bits of a range that choose the address. 2^40 addresses are more than enough.
	longestSuffix = 40
)

// spread gives each server an address of its own from a range.
type spread struct {
	within netip.Prefix
	count  uint64 // the addresses in use: not the first and the last, which are the network and the broadcast address

	mu      sync.Mutex
	servers map[Server]*seat
	taken   map[uint64]Server // by the address's number
}

// seat is a server's address.
type seat struct {
	number uint64
	until  time.Time // some client may use it until then
}

func newSpread(r netip.Prefix) *spread {
	bits := min(r.Addr().BitLen()-r.Bits(), longestSuffix)
	return &spread{within: r.Masked(), count: 1<<bits - 2, servers: map[Server]*seat{}, taken: map[uint64]Server{}}
}

// place returns the server's address, which stays its own until then.
func (s *spread) place(server Server, now, until time.Time) (netip.Addr, Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if has, ok := s.servers[server]; ok {
		if has.until.Before(until) {
			has.until = until
		}
		return s.at(has.number), 0
	}
	if len(s.servers) >= mostSpread {
		s.forget(now)
	}
	if len(s.servers) >= mostSpread {
		return netip.Addr{}, Crowded
	}
	for probe := range uint64(probes) {
		number := (uint64(server) + probe) % s.count
		holder, held := s.taken[number]
		if held && now.Before(s.servers[holder].until) {
			continue
		}
		if held {
			delete(s.servers, holder)
		}
		s.taken[number], s.servers[server] = server, &seat{number, until}
		return s.at(number), 0
	}
	return netip.Addr{}, Crowded
}

func (s *spread) at(number uint64) netip.Addr { return At(s.within, number+1) }

// forget removes servers whose addresses no client uses any more.
func (s *spread) forget(now time.Time) {
	for server, has := range s.servers {
		if !now.Before(has.until) {
			delete(s.servers, server)
			delete(s.taken, has.number)
		}
	}
}
