package longhaul

import (
	"net"
	"net/netip"
	"slices"

	"github.com/miekg/dns"
)

// notPublic are the ranges that are not privately used networks but lead to no public server either. netip knows the rest.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),      // this network; sinkholes answer with it
	netip.MustParsePrefix("100.64.0.0/10"),  // shared address space behind carriers' NAT, RFC 6598
	netip.MustParsePrefix("240.0.0.0/4"),    // reserved, and the broadcast address
	netip.MustParsePrefix("64:ff9b:1::/48"), // local-use NAT64, RFC 8215
}

// isPublic reports whether addr may belong to a server on the Internet.
func isPublic(addr netip.Addr) bool {
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !containsIn(notPublic, addr)
}

func contains(addrs []netip.Addr, addr netip.Addr) bool { return slices.Contains(addrs, addr) }

func containsIn(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// addressOf returns the address in an A or AAAA record.
func addressOf(rr dns.RR) (netip.Addr, bool) {
	var ip net.IP
	switch rr := rr.(type) {
	case *dns.A:
		ip = rr.A.To4()
	case *dns.AAAA:
		ip = rr.AAAA.To16()
	}
	return netip.AddrFromSlice(ip)
}

// lease is an address and for how long it is given out, in seconds.
type lease struct {
	addr netip.Addr
	ttl  uint32
}

// appendRecords appends the A or AAAA records of addresses, all of one family, that belong to owner. However many they are,
// they are made in one piece: this is done for every steered answer.
func appendRecords(answer []dns.RR, owner string, leases []lease) []dns.RR {
	if len(leases) == 0 {
		return answer
	}
	if leases[0].addr.Is4() {
		made := make([]struct {
			record dns.A
			ip     [4]byte
		}, len(leases))
		for i, l := range leases {
			m := &made[i]
			m.ip = l.addr.As4()
			m.record = dns.A{Hdr: header(owner, dns.TypeA, l.ttl), A: m.ip[:]}
			answer = append(answer, &m.record)
		}
		return answer
	}
	made := make([]struct {
		record dns.AAAA
		ip     [16]byte
	}, len(leases))
	for i, l := range leases {
		m := &made[i]
		m.ip = l.addr.As16()
		m.record = dns.AAAA{Hdr: header(owner, dns.TypeAAAA, l.ttl), AAAA: m.ip[:]}
		answer = append(answer, &m.record)
	}
	return answer
}

func header(owner string, rrtype uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
}

// sourceOf returns the address a query came from. An IPv4 client on a dual-stack socket counts as what it is.
func sourceOf(remote net.Addr) netip.Addr {
	switch a := remote.(type) {
	case *net.UDPAddr:
		addr, _ := netip.AddrFromSlice(a.IP)
		return addr.Unmap()
	case *net.TCPAddr:
		addr, _ := netip.AddrFromSlice(a.IP)
		return addr.Unmap()
	}
	ap, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}
