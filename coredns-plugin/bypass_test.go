package longhaul

import (
	"net"
	"net/netip"
	"testing"

	"github.com/coredns/coredns/plugin/test"

	"example.org/longhaul/coredns-plugin/steer"

	"github.com/miekg/dns"
)

// steeredFor reports whether a client at source is steered, over UDP and TCP alike.
func steeredFor(t *testing.T, l *Longhaul, source string) bool {
	t.Helper()
	udp := ask(t, l, question("example.org.", dns.TypeA), &test.ResponseWriter{RemoteIP: source})
	tcp := ask(t, l, question("example.org.", dns.TypeA), &test.ResponseWriter{RemoteIP: source, TCP: true})
	if len(udp.Answer) != len(tcp.Answer) {
		t.Errorf("Source %s gets another answer over TCP than over UDP", source)
	}
	return len(udp.Answer) > 1
}

func TestTheProxyAndConfiguredSourcesGetTheTruth(t *testing.T) {
	l := newPlugin(t, "longhaul {\nproxy 198.51.100.12 2001:db8::12 127.0.0.1\nmatch example.org\nbypass 192.0.2.0/28 2001:db8:7::/64\n}",
		answering("example.org. 300 IN A 203.0.113.1"))
	for source, want := range map[string]bool{
		"198.51.100.12":        false, // the proxy
		"::ffff:198.51.100.12": false, // the same on a dual-stack socket
		"2001:db8::12":         false,
		"192.0.2.15":           false,
		"::ffff:192.0.2.15":    false,
		"192.0.2.16":           true,
		"2001:db8:7::abc":      false,
		"2001:db8:8::abc":      true,
		"198.51.100.13":        true,
		"127.0.0.1":            true, // a proxy on loopback looks like any other local program
	} {
		if got := steeredFor(t, l, source); got != want {
			t.Errorf("Source %s is steered: %v", source, got)
		}
	}
}

func TestALoopbackSourceIsBypassedWhenConfigured(t *testing.T) {
	l := newPlugin(t, "longhaul {\nproxy 127.0.0.1\nmatch example.org\nbypass 127.0.0.1\n}", answering("example.org. 300 IN A 203.0.113.1"))
	if steeredFor(t, l, "127.0.0.1") {
		t.Error("Steered")
	}
}

func TestAllAddressesOfThisHostAreBypassedWhileTheProxyIsOnIt(t *testing.T) {
	local := globalAddresses(t)
	if len(local) == 0 {
		SkipTest(t, "this host has no address but loopback")
	}
	here := newBypass(nil, &steer.Addresses{V4: local[:1]})
	here.readLocal()
	elsewhere := newBypass(nil, &steer.Addresses{V4: []netip.Addr{netip.MustParseAddr("198.51.100.12")}})
	elsewhere.readLocal()
	for _, addr := range local {
		if !here.has(addr) {
			t.Errorf("%s is not bypassed although the proxy is on %s", addr, local[0])
		}
		if elsewhere.has(addr) {
			t.Errorf("%s is bypassed although the proxy is elsewhere", addr)
		}
	}
	if here.has(netip.MustParseAddr("127.0.0.1")) {
		t.Error("Loopback is bypassed")
	}
}

func globalAddresses(t *testing.T) (found []netip.Addr) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && !prefix.Addr().IsLoopback() {
			found = append(found, prefix.Addr())
		}
	}
	return found
}

func withSubnet(r *dns.Msg, family uint16, bits uint8, addr string) *dns.Msg {
	r.SetEdns0(1232, false)
	r.IsEdns0().Option = append(r.IsEdns0().Option, &dns.EDNS0_SUBNET{
		Code: dns.EDNS0SUBNET, Family: family, SourceNetmask: bits, Address: net.ParseIP(addr)})
	return r
}

func TestAClientSubnetInsideOfBypassGetsTheTruthForThatSubnetOnly(t *testing.T) {
	l := newPlugin(t, "longhaul {\nproxy 198.51.100.12\nmatch example.org\nbypass 192.0.2.0/24 2001:db8:7::/48\n}",
		answering("example.org. 300 IN A 203.0.113.1"))
	for _, tc := range []struct {
		family  uint16
		bits    uint8
		addr    string
		steered bool
	}{
		{1, 24, "192.0.2.0", false},
		{1, 32, "192.0.2.9", false},
		{1, 23, "192.0.2.0", true}, // holds clients outside of bypass
		{1, 24, "203.0.113.0", true},
		{2, 56, "2001:db8:7:1::", false},
		{2, 56, "2001:db8:8:1::", true},
	} {
		m := ask(t, l, withSubnet(question("example.org.", dns.TypeA), tc.family, tc.bits, tc.addr), &test.ResponseWriter{})
		if got := len(m.Answer) > 1; got != tc.steered {
			t.Errorf("%s/%d is steered: %v", tc.addr, tc.bits, got)
		}
		opt := m.IsEdns0()
		if opt == nil || len(opt.Option) != 1 {
			t.Fatalf("%s/%d gets options %v", tc.addr, tc.bits, opt)
		}
		if scope := opt.Option[0].(*dns.EDNS0_SUBNET); scope.SourceScope != tc.bits || scope.SourceNetmask != tc.bits || scope.Address.String() != net.ParseIP(tc.addr).String() {
			t.Errorf("%s/%d gets scope %v", tc.addr, tc.bits, scope)
		}
	}
}

func TestAClientSubnetIsLeftAloneWhereNothingDependsOnIt(t *testing.T) {
	next := answering("example.org. 300 IN A 203.0.113.1")
	for name, tc := range map[string]struct {
		corefile string
		r        *dns.Msg
	}{
		"no bypass":           {oneName, withSubnet(question("example.org.", dns.TypeA), 1, 24, "192.0.2.0")},
		"no subnet disclosed": {"longhaul {\nproxy 198.51.100.12\nmatch example.org\nbypass 192.0.2.0/24\n}", withSubnet(question("example.org.", dns.TypeA), 1, 0, "0.0.0.0")},
	} {
		m := ask(t, newPlugin(t, tc.corefile, next), tc.r, &test.ResponseWriter{})
		if len(m.Answer) != 2 || m.IsEdns0() != nil {
			t.Errorf("With %s: %s", name, m)
		}
	}
}

func TestAScopeReplacesTheUpstreamsInACopy(t *testing.T) {
	res := question("example.org.", dns.TypeA)
	withSubnet(res, 1, 24, "192.0.2.0")
	res.IsEdns0().Option = append(res.IsEdns0().Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})
	before := res.String()
	out := steer.WithScope(res, &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 20, Address: net.ParseIP("192.0.0.0")})
	if res.String() != before {
		t.Errorf("Changed the message it was given to %s", res)
	}
	options := out.IsEdns0().Option
	if len(options) != 2 || options[0].Option() != dns.EDNS0NSID || options[1].(*dns.EDNS0_SUBNET).SourceScope != 20 {
		t.Errorf("Options are %v", options)
	}
}
