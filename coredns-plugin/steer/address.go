package steer

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

// Addresses are the proxy's addresses by family, in the order of the response.
type Addresses struct{ V4, V6 []netip.Addr }

// Add appends addresses of either family.
func (a *Addresses) Add(addrs ...netip.Addr) {
	for _, addr := range addrs {
		if addr.Is4() {
			a.V4 = append(a.V4, addr)
		} else {
			a.V6 = append(a.V6, addr)
		}
	}
}

// Len is the number of addresses of both families.
func (a *Addresses) Len() int { return len(a.V4) + len(a.V6) }

// Of returns the addresses that answer queries of type qtype.
func (a *Addresses) Of(qtype uint16) []netip.Addr {
	switch qtype {
	case dns.TypeA:
		return a.V4
	case dns.TypeAAAA:
		return a.V6
	}
	return nil
}

// FirstType is the type of query by which clients reach the proxy: A, unless it has only IPv6 addresses.
func (a *Addresses) FirstType() uint16 {
	if len(a.V4) == 0 {
		return dns.TypeAAAA
	}
	return dns.TypeA
}

// FirstPublic returns the first IPv4 address of a response that may belong to a server on the Internet. Not valid: there is none.
func FirstPublic(response *dns.Msg) netip.Addr {
	for _, rr := range response.Answer {
		if addr, ok := addressOf(rr); ok && addr.Is4() && isPublic(addr) {
			return addr
		}
	}
	return netip.Addr{}
}
