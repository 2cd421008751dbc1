package longhaul

import (
	"fmt"
	"net/netip"
	"testing"
)

// TestTheHashIsTheKernels has the results of `jhash ip saddr mod 100 seed 0x104a` of nft, and of the same for ip6.
func TestTheHashIsTheKernels(t *testing.T) {
	for text, want := range map[string]uint64{
		"192.0.2.27":    2,
		"192.0.2.26":    14,
		"192.0.2.12":    19,
		"192.0.2.39":    25,
		"192.0.2.9":     33,
		"192.0.2.15":    38,
		"192.0.2.34":    39,
		"192.0.2.6":     45,
		"192.0.2.13":    55,
		"192.0.2.4":     61,
		"192.0.2.3":     69,
		"192.0.2.21":    75,
		"192.0.2.32":    84,
		"192.0.2.40":    97,
		"2001:db8::b9":  0,
		"2001:db8::2bf": 13,
		"2001:db8::172": 20,
		"2001:db8::456": 31,
		"2001:db8::40c": 39,
		"2001:db8::22b": 43,
		"2001:db8::309": 47,
		"2001:db8::3c2": 55,
		"2001:db8::1e1": 62,
		"2001:db8::47b": 65,
		"2001:db8::5a3": 71,
		"2001:db8::4a":  78,
		"2001:db8::103": 90,
		"2001:db8::32e": 92,
	} {
		addr := netip.MustParseAddr(text)
		if got := uint64(jhash(addr.AsSlice(), 0x104a)) * 100 >> 32; got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}

func TestAComparedClientGetsTheTruthAndAllOthersAreSteered(t *testing.T) {
	next := answering("example.org. 300 IN A 203.0.113.1")
	l := newPlugin(t, "longhaul {\nproxy 198.51.100.12\nmatch example.org\ncompare 10 4170\n}", next)
	truths := 0
	for host := range 256 {
		source := fmt.Sprintf("192.0.2.%d", host)
		steered := steeredFor(t, l, source)
		if steered == l.compare.has(netip.MustParseAddr(source)) {
			t.Errorf("%s is steered: %v", source, steered)
		}
		if steered != steeredFor(t, l, "::ffff:"+source) {
			t.Errorf("%s gets another response on a dual-stack socket", source)
		}
		if !steered {
			truths++
		}
	}
	if truths < 13 || truths > 39 {
		t.Errorf("%d of 256 clients get the truth, far from 10 percent", truths)
	}
}

func TestWithoutAShareAllClientsAreSteered(t *testing.T) {
	if (share{}).has(netip.MustParseAddr("192.0.2.1")) || (share{percent: 50}).has(netip.Addr{}) {
		t.Error("Compared")
	}
}
