package longhaul

import (
	"context"
	"net"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// discard is a client that reads nothing. Its address is made once, as a connection's is.
type discard struct{ test.ResponseWriter }

var client = &net.UDPAddr{IP: net.IPv4(192, 0, 2, 77), Port: 40212}

func (discard) RemoteAddr() net.Addr    { return client }
func (discard) WriteMsg(*dns.Msg) error { return nil }

// BenchmarkServeDNS is the plugin's share of one query: what the next plugin answers is made once.
func BenchmarkServeDNS(b *testing.B) {
	r := question("www.example.org.", dns.TypeA)
	res := new(dns.Msg).SetReply(r)
	res.Answer = parseRecords("www.example.org. 300 IN A 203.0.113.1\nwww.example.org. 300 IN A 203.0.113.2")
	next := plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, _ *dns.Msg) (int, error) {
		return dns.RcodeSuccess, w.WriteMsg(res)
	})
	w := &discard{}
	for name, h := range map[string]plugin.Handler{
		"without":        next,
		"not listed":     newPlugin(b, "longhaul {\nproxy 198.51.100.12\nmatch example.com\n}", next),
		"listed prepend": newPlugin(b, "longhaul {\nproxy 198.51.100.12\nmatch example.org\n}", next),
		"listed replace": newPlugin(b, "longhaul {\nproxy 198.51.100.12\nmatch example.org\nmode replace\n}", next),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.ServeDNS(b.Context(), w, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
