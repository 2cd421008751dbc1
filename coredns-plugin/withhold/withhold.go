// Package withhold implements a plugin that removes addresses of some ranges from responses.
//
// It stands between Envoy and its resolvers. Envoy checks the first address of a response, but connects to the next one
// if that address does not respond. So a response that mixes a dead public address with a private one would bypass the
// check. A response without refused addresses cannot.
package withhold

import (
	"context"
	"net"
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"

	"github.com/miekg/dns"
)

const pluginName = "withhold"

// nobody replaces the removed A records when no other is left. It is the IPv4 dummy address (RFC 7600), which belongs
// to no host. So Envoy learns "not to be reached" instead of "no such name", and refuses the request for its own
// reason.
var nobody = netip.AddrFrom4([4]byte{192, 0, 0, 8})

// Withhold is the plugin's handler.
type Withhold struct {
	Next plugin.Handler

	refused []netip.Prefix
	allowed []netip.Prefix
}

// Name implements the plugin.Handler interface.
func (h *Withhold) Name() string { return pluginName }

// ServeDNS implements the plugin.Handler interface.
func (h *Withhold) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) != 1 {
		return plugin.NextOrFailure(h.Name(), h.Next, ctx, w, r)
	}
	truth := nonwriter.New(w)
	rcode, err := plugin.NextOrFailure(h.Name(), h.Next, ctx, truth, r)
	if truth.Msg == nil {
		return rcode, err
	}
	if writeErr := w.WriteMsg(h.filter(truth.Msg)); err == nil {
		err = writeErr
	}
	return rcode, err
}

// filter returns res without refused addresses, or res itself if it has none. Caches share the records, so only the
// slices that hold them are new.
func (h *Withhold) filter(res *dns.Msg) *dns.Msg {
	if !slices.ContainsFunc(res.Answer, h.withheld) && !slices.ContainsFunc(res.Extra, h.withheld) {
		return res
	}
	out := new(dns.Msg)
	*out = *res
	out.AuthenticatedData = false
	out.Extra = slices.DeleteFunc(slices.Clone(res.Extra), h.withheld)
	var taken *dns.A
	out.Answer = nil
	left := false
	for _, rr := range res.Answer {
		if h.withheld(rr) {
			if a, ok := rr.(*dns.A); ok && taken == nil {
				taken = a
			}
			continue
		}
		_, left4 := rr.(*dns.A)
		left = left || left4
		out.Answer = append(out.Answer, rr)
	}
	if taken != nil && !left {
		out.Answer = append(out.Answer, &dns.A{Hdr: taken.Hdr, A: nobody.AsSlice()})
	}
	return out
}

// withheld returns true if rr is an address that no response may contain.
func (h *Withhold) withheld(rr dns.RR) bool {
	var ip net.IP
	switch rr := rr.(type) {
	case *dns.A:
		ip = rr.A.To4()
	case *dns.AAAA:
		ip = rr.AAAA.To16()
	default:
		return false
	}
	addr, ok := netip.AddrFromSlice(ip)
	return !ok || contains(h.refused, addr) && !contains(h.allowed, addr)
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}
