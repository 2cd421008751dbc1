// Package withhold implements a plugin that keeps addresses of some ranges out of answers.
//
// It stands between Envoy and the resolvers. Envoy judges the address it resolved first, but connects to the next one of the
// answer when that does not respond, so an answer that mixes a dead public address with a private one would lead past the
// judgement. An answer that holds no refused address cannot.
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

// nobody stands for the addresses taken out when no other is left: the IPv4 dummy address (RFC 7600), which belongs to no
// host. Whoever asks learns "not to be reached" instead of "no such name", and refuses it with its own reason.
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

// filter returns res without refused addresses, res itself if there are none. The records are shared with caches: only the
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

// withheld reports whether rr is an address that must not be answered.
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
