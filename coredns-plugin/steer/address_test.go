package steer

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TestTheTableOfSpecialAddressesIsTheFiltersOwn compares the copy that this module embeds with the original: go:embed does
// not reach outside the module.
func TestTheTableOfSpecialAddressesIsTheFiltersOwn(t *testing.T) {
	original, err := os.ReadFile("../../filters/http-semantics/special-addresses.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(original) != specialAddresses {
		t.Error("special-addresses.txt differs from ../../filters/http-semantics/special-addresses.txt: copy that file here")
	}
}

// TestEveryEdgeOfTheTable asks for the first and last address of each row and for their neighbours. The expected values come
// from the rows, read in another way.
func TestEveryEdgeOfTheTable(t *testing.T) {
	refused := func(addr netip.Addr) bool {
		for line := range strings.Lines(specialAddresses) {
			if cidr, rest, _ := strings.Cut(line, " "); cidr != "#" && strings.HasPrefix(strings.TrimSpace(rest), "no") {
				if p := netip.MustParsePrefix(cidr); p.Addr().BitLen() == addr.BitLen() && p.Masked() == netip.PrefixFrom(addr, p.Bits()).Masked() {
					return true
				}
			}
		}
		return false
	}
	edges := 0
	for line := range strings.Lines(specialAddresses) {
		fields := strings.Fields(line)
		if fields[0] == "#" || fields[1] == "embedded" {
			continue
		}
		prefix := netip.MustParsePrefix(fields[0])
		first, last := prefix.Addr(), lastOf(prefix)
		for _, addr := range []netip.Addr{first, last, first.Prev(), last.Next()} {
			if !addr.IsValid() {
				continue // outside the address space
			}
			edges++
			if isPublic(addr) == refused(addr) {
				t.Errorf("%s, at an edge of %s: public %t", addr, prefix, isPublic(addr))
			}
		}
	}
	if edges < 100 {
		t.Errorf("%d edges were tried", edges)
	}
}

// lastOf returns the last address of a range.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// TestANameIsSteeredThatOnlyHasAnAddressTheGuardRefuses: the proxy would have to refuse the connection that it asked for.
func TestANameIsSteeredThatOnlyHasAnAddressTheGuardRefuses(t *testing.T) {
	for _, record := range []string{
		"A 198.18.0.5", "A 192.0.0.10", "A 192.88.99.1",
		"AAAA ::ffff:8.8.8.8", "AAAA 2002:808:808::1", "AAAA fec0::1", "AAAA 5f00::1", "AAAA ::10.0.0.1",
		"AAAA 64:ff9b::10.0.0.1", "AAAA 64:ff9b:1::1",
	} {
		rr, err := dns.NewRR("www.example.org. 300 IN " + record)
		if err != nil {
			t.Fatal(err)
		}
		addr, _ := addressOf(rr)
		if p := (&Policy{}); !p.staysPrivate([]netip.Addr{addr}, nil) {
			t.Errorf("%s is steered", record)
		}
	}
	for _, public := range []string{"8.8.8.8", "198.51.100.7", "64:ff9b::8.8.8.8", "2001:db8::1", "2001:200::1"} {
		if (&Policy{}).staysPrivate([]netip.Addr{netip.MustParseAddr(public)}, nil) {
			t.Errorf("%s is not steered", public)
		}
	}
}
