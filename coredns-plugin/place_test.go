package longhaul

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"

	"example.org/longhaul/coredns-plugin/steer"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func init() {
	readCertificates = func(context.Context, string, []netip.Addr) ([]string, error) { return nil, errors.New("no route") }
}

// twoServers has www and img at one server, and files at another, all in both families.
var twoServers = plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	name, server := r.Question[0].Name, 1
	if strings.HasPrefix(name, "files.") {
		server = 2
	}
	return truth{answers: map[string]string{
		"A":     fmt.Sprintf("%s 300 IN A 203.0.113.%d", name, server),
		"AAAA":  fmt.Sprintf("%s 300 IN AAAA 2001:db8:1::%d", name, server),
		"HTTPS": name + " 300 IN HTTPS 1 . alpn=h2",
	}}.ServeDNS(ctx, w, r)
})

// first returns the first address that a name gets.
func first(t *testing.T, l *Longhaul, name string, qtype uint16) netip.Addr {
	t.Helper()
	switch rr := ask(t, l, question(name, qtype), &test.ResponseWriter{}).Answer[0].(type) {
	case *dns.A:
		return netip.MustParseAddr(rr.A.String())
	case *dns.AAAA:
		return netip.MustParseAddr(rr.AAAA.String())
	}
	return netip.Addr{}
}

func TestServersOfARangeAreApart(t *testing.T) {
	l := newPlugin(t, "longhaul {\nproxy 198.51.100.12 198.18.0.0/16 2001:db8::12 2001:db8:5::/64\nmatch example.org\nown pep.example.org\n}", twoServers)
	for qtype, within := range map[uint16]string{dns.TypeA: "198.18.0.0/16", dns.TypeAAAA: "2001:db8:5::/64"} {
		www, img := first(t, l, "www.example.org.", qtype), first(t, l, "img.example.org.", qtype)
		files := first(t, l, "files.example.org.", qtype)
		if !netip.MustParsePrefix(within).Contains(www) || www != img || www == files {
			t.Errorf("www is at %s, img at %s, files at %s", www, img, files)
		}
	}
	if own := first(t, l, "pep.example.org.", dns.TypeA); own != netip.MustParseAddr("198.51.100.12") {
		t.Errorf("The proxy's own name is at %s", own)
	}
	again := newPlugin(t, "longhaul {\nproxy 198.51.100.12 198.18.0.0/16\nmatch example.org\n}",
		answering("www.example.org. 300 IN A 198.18.3.4"))
	if m := ask(t, again, question("www.example.org.", dns.TypeA), &test.ResponseWriter{}); len(m.Answer) != 1 {
		t.Errorf("A name that is at the proxy already is answered %q", words(m.Answer))
	}
}

func TestANameThatWaitsForCertificatesKeepsTheTruthForSeconds(t *testing.T) {
	l := newPlugin(t, "longhaul {\nproxy 198.51.100.12\nmatch example.org\n}", twoServers)
	for _, name := range []string{"www.example.org.", "img.example.org."} {
		if got := first(t, l, name, dns.TypeA); got != netip.MustParseAddr("198.51.100.12") {
			t.Errorf("%s is at %s", name, got)
		}
	}
	before := testutil.ToFloat64(l.counts.of("").skips[steer.LeftUnread])
	for qtype, want := range map[uint16]string{
		dns.TypeA:     "files.example.org. 10 IN A 203.0.113.2",
		dns.TypeAAAA:  "files.example.org. 10 IN AAAA 2001:db8:1::2",
		dns.TypeHTTPS: `files.example.org. 10 IN HTTPS 1 . alpn="h2"`,
	} {
		if got := words(ask(t, l, question("files.example.org.", qtype), &test.ResponseWriter{}).Answer); got != want {
			t.Errorf("%s is answered %q", dns.TypeToString[qtype], got)
		}
	}
	if counted := testutil.ToFloat64(l.counts.of("").skips[steer.LeftUnread]); counted != before+3 {
		t.Errorf("%v counted, before %v", counted, before)
	}
}
