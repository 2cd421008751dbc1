// Package apart keeps servers apart that clients reach at a proxy's addresses.
//
// A browser that knows two names at one address may send the requests for both on one HTTP/2 connection, if the server's
// certificate covers both (RFC 9113 section 9.1.1). A proxy that passes TLS unread has one server behind such a connection. So
// two names may share an address of the proxy only where the same server is behind both, or where neither server's
// certificate covers the other's name.
//
//	apart.go         the table: which address a name gets
//	spread.go        a range of addresses: each server gets one of its own
//	shared.go        one address: certificates decide
//	certificates.go  what certificates cover, read from the origins
package apart

import (
	"context"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Reason is why a name gets no address of the proxy. Zero: it gets one.
type Reason uint8

// The reasons.
const (
	Unread  Reason = iota + 1 // a certificate that decides has not been read yet
	Covered                   // a certificate covers names of two servers
	Crowded                   // every address that the name may have is taken
)

// Server identifies the server behind a name.
type Server uint64

// linger is the time that a browser may go on using an address after the TTL of its record. Chromium closes an idle HTTP/2
// connection after 5 minutes.
const linger = 10 * time.Minute

// Table knows which server stands behind each address of the proxy. All its methods may be called at once.
type Table struct {
	v4, v6 *spread // nil without a range of the family
	one    *shared
}

// New makes the table of a proxy that has these ranges beside its own addresses. At most one of each family.
func New(ranges []netip.Prefix, read Read) *Table {
	t := &Table{one: newShared(newCertificates(read))}
	for _, r := range ranges {
		if r.Addr().Is4() {
			t.v4 = newSpread(r)
		} else {
			t.v6 = newSpread(r)
		}
	}
	return t
}

// Start reads certificates in the background until ctx ends.
func (t *Table) Start(ctx context.Context, running *sync.WaitGroup) {
	t.one.certificates.start(ctx, running)
}

// Place returns the address for name, whose server has these addresses of one family. An address that is not valid stands for
// the proxy's own ones. Clients may use the answer for ttl.
func (t *Table) Place(name string, origins []netip.Addr, ttl time.Duration) (netip.Addr, Reason) {
	if len(origins) == 0 {
		return netip.Addr{}, Crowded
	}
	now := time.Now()
	server := serverAt(origins)
	if in := t.spread(origins[0]); in != nil {
		return in.place(server, now, now.Add(ttl+linger))
	}
	return netip.Addr{}, t.one.place(strings.ToLower(strings.TrimSuffix(name, ".")), server, origins, now, now.Add(ttl+linger))
}

func (t *Table) spread(like netip.Addr) *spread {
	if like.Is4() {
		return t.v4
	}
	return t.v6
}

// Alone hands out addresses of a range, one for each name.
type Alone struct{ in *spread }

// NewAlone makes an Alone of a range.
func NewAlone(r netip.Prefix) *Alone { return &Alone{newSpread(r)} }

// Place returns the address of name, for clients that may use it for ttl.
func (a *Alone) Place(name string, ttl time.Duration) (netip.Addr, Reason) {
	now := time.Now()
	return a.in.place(Named(name), now, now.Add(ttl+linger))
}

// serverAt identifies a server by all of its addresses. The order does not matter. The same server has the same number on
// every box and after every start, so that boxes of a fleet give the same address.
func serverAt(addrs []netip.Addr) Server {
	var room [8]netip.Addr
	sorted := append(room[:0], addrs...)
	slices.SortFunc(sorted, netip.Addr.Compare)
	hash := uint64(fnvOffset)
	for _, addr := range slices.Compact(sorted) {
		bytes := addr.As16()
		hash = fnv(hash, bytes[:])
	}
	return mix(hash)
}

// Named identifies a name, the same on every box and after every start.
func Named(name string) Server {
	return mix(fnv(fnvOffset, []byte(strings.ToLower(name))))
}

// FNV-1a. Package hash/fnv would take memory for every query.
const (
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

func fnv(hash uint64, bytes []byte) uint64 {
	for _, b := range bytes {
		hash = (hash ^ uint64(b)) * fnvPrime
	}
	return hash
}

// mix spreads the bits of a hash, of which the lowest choose the address: FNV-1a keeps neighbours together. It is the
// finalizer of MurmurHash3.
func mix(hash uint64) Server {
	hash ^= hash >> 33
	hash *= 0xff51afd7ed558ccd
	hash ^= hash >> 33
	hash *= 0xc4ceb9fe1a85ec53
	hash ^= hash >> 33
	return Server(hash)
}

// At returns the address of a range by its number.
func At(r netip.Prefix, number uint64) netip.Addr {
	if r.Addr().Is4() {
		bytes := r.Addr().As4()
		binary.BigEndian.PutUint32(bytes[:], binary.BigEndian.Uint32(bytes[:])|uint32(number))
		return netip.AddrFrom4(bytes)
	}
	bytes := r.Addr().As16()
	binary.BigEndian.PutUint64(bytes[8:], binary.BigEndian.Uint64(bytes[8:])|number)
	return netip.AddrFrom16(bytes)
}
