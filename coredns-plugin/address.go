package longhaul

import (
	_ "embed"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// specialAddresses is a copy of the table that the filters and the longhaul command read. Its head explains the columns.
//
//go:embed special-addresses.txt
var specialAddresses string

// special holds the rows of the table that name no ordinary address, one list an address family.
var special = readSpecial(specialAddresses)

type specialRanges struct {
	ipv4, ipv6 []netip.Prefix
	embedding  []netip.Prefix // /96 ranges whose last 32 bits are an IPv4 address
}

// readSpecial reads the table. It panics on a malformed row: the table is part of the program.
func readSpecial(table string) specialRanges {
	var ranges specialRanges
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		prefix := netip.MustParsePrefix(fields[0])
		switch {
		case fields[1] == "embedded":
			ranges.embedding = append(ranges.embedding, prefix)
		case fields[1] == "no" && prefix.Addr().Is4():
			ranges.ipv4 = append(ranges.ipv4, prefix)
		case fields[1] == "no":
			ranges.ipv6 = append(ranges.ipv6, prefix)
		}
	}
	return ranges
}

// isPublic reports whether addr may belong to a server on the Internet. The proxy refuses to connect to any other address.
func isPublic(addr netip.Addr) bool {
	switch {
	case !addr.IsValid():
		return false
	case addr.Is4():
		return !containsIn(special.ipv4, addr)
	case containsIn(special.embedding, addr):
		b := addr.As16()
		return isPublic(netip.AddrFrom4([4]byte(b[12:])))
	}
	return !containsIn(special.ipv6, addr)
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
