package longhaul

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// TestEverySizeBoundary asks for answers of every length with every buffer size around it. The server's own scrubbing runs
// behind the plugin, as it does in CoreDNS: the answer on the wire must fit, hold the proxy first, and be truncated only if
// the truth alone would have been.
func TestEverySizeBoundary(t *testing.T) {
	for _, edns := range []uint16{0, 512, 700, 1232, 4096} {
		for addresses := 1; addresses <= 64; addresses++ {
			for _, chain := range []int{0, 1, 6} {
				answer := chainAndAddresses(chain, addresses)
				next := truth{answers: map[string]string{"A": answer}}
				l := newPlugin(t, "longhaul {\nproxy 198.51.100.12 198.51.100.13\nmatch example.org\nmax_origin 64\n}", next)
				r := new(dns.Msg)
				r.SetQuestion("www.example.org.", dns.TypeA)
				if edns > 0 {
					r.SetEdns0(edns, false)
				}
				alone := onWire(t, next, r)
				m := onWire(t, l, r)

				size := max(int(edns), dns.MinMsgSize)
				packed, err := m.Pack()
				if err != nil {
					t.Fatal(err)
				}
				where := fmt.Sprintf("buffer %d, %d addresses behind %d aliases", size, addresses, chain)
				if len(packed) > size {
					t.Errorf("With %s: %d bytes", where, len(packed))
				}
				if m.Truncated && !alone.Truncated {
					t.Errorf("With %s: truncated by the plugin", where)
				}
				proxy := slices.IndexFunc(m.Answer, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeA })
				if proxy != chain || m.Answer[proxy].(*dns.A).A.String() != "198.51.100.12" {
					t.Errorf("With %s: answer is %s", where, words(m.Answer))
				}
			}
		}
	}
}

// onWire is the answer of h as the server would send it.
func onWire(t *testing.T, h plugin.Handler, r *dns.Msg) *dns.Msg {
	t.Helper()
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	r = r.Copy() // the server writes into the OPT it sends back
	if _, err := h.ServeDNS(t.Context(), request.NewScrubWriter(r, rec), r); err != nil {
		t.Fatal(err)
	}
	return rec.Msg
}

func chainAndAddresses(chain, addresses int) string {
	var b strings.Builder
	owner := "www.example.org."
	for i := range chain {
		next := fmt.Sprintf("link%d.%s.example.net.", i, strings.Repeat("x", 40))
		fmt.Fprintf(&b, "%s 300 IN CNAME %s\n", owner, next)
		owner = next
	}
	for i := range addresses {
		fmt.Fprintf(&b, "%s 300 IN A 203.0.113.%d\n", owner, i)
	}
	return b.String()
}
