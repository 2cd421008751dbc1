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

// addressRecord makes the A or AAAA record of addr.
func addressRecord(owner string, addr netip.Addr, ttl uint32) dns.RR {
	if addr.Is4() {
		return &dns.A{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}, A: addr.AsSlice()}
	}
	return &dns.AAAA{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeAAAA, Class: dns.ClassINET, Ttl: ttl}, AAAA: addr.AsSlice()}
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
