package steer

import (
	"net/netip"
	"slices"

	"github.com/miekg/dns"
)

// ClientSubnet returns the EDNS client subnet option of a query (RFC 7871) and the range of clients it was asked for, the
// zero Prefix when it has none or says nothing of the client.
//
// A resolver that asks for its clients is one source to us, but its option tells whether all clients it may give the answer
// to are to be bypassed. Anybody may claim any subnet: that can only win the truth, never the proxy.
func ClientSubnet(r *dns.Msg) (*dns.EDNS0_SUBNET, netip.Prefix) {
	opt := r.IsEdns0()
	if opt == nil {
		return nil, netip.Prefix{}
	}
	for _, o := range opt.Option {
		if ecs, ok := o.(*dns.EDNS0_SUBNET); ok {
			addr, ok := netip.AddrFromSlice(ecs.Address)
			if !ok || ecs.SourceNetmask == 0 {
				return nil, netip.Prefix{}
			}
			if ecs.Family == 1 {
				addr = addr.Unmap() // package dns holds IPv4 in 16 bytes
			}
			prefix, err := addr.Prefix(int(ecs.SourceNetmask))
			if err != nil {
				return nil, netip.Prefix{}
			}
			return ecs, prefix
		}
	}
	return nil, netip.Prefix{}
}

// WithScope returns res saying that it holds for the query's subnet only. Otherwise the resolver between us and the clients
// would give the truth to those that are to be steered, or the other way round.
func WithScope(res *dns.Msg, asked *dns.EDNS0_SUBNET) *dns.Msg {
	scoped := *asked
	scoped.SourceScope = asked.SourceNetmask
	return withOption(res, &scoped)
}

// withOption returns res with an option of EDNS, in place of others of its kind.
func withOption(res *dns.Msg, option dns.EDNS0) *dns.Msg {
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	out := *res
	out.Extra = make([]dns.RR, 0, len(res.Extra)+1)
	for _, rr := range res.Extra {
		if was, ok := rr.(*dns.OPT); ok {
			opt.Hdr = was.Hdr
			opt.Option = slices.DeleteFunc(slices.Clone(was.Option), func(o dns.EDNS0) bool { return o.Option() == option.Option() })
			continue
		}
		out.Extra = append(out.Extra, rr)
	}
	opt.Option = append(opt.Option, option)
	out.Extra = append(out.Extra, opt)
	return &out
}
