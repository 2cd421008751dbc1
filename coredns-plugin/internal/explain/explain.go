// Package explain is the option of a query by which a client on this machine asks why a response is what it is: `longhaul explain`
// and `dig +ednsopt=65053` send it. Several plugins say something about one response.
package explain

import (
	"context"
	"net"
	"slices"

	"github.com/miekg/dns"
)

// Option is the EDNS option, from the range for local use (RFC 6891 section 9). In a response, it is the source of the records.
const Option = 65053

type key struct{}

// Begin takes the option out of a query, and returns true if the response shall say why: a client on this machine wants it.
// Plugins behind this one see that by the context. Other machines learn nothing.
func Begin(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (context.Context, bool) {
	if ctx.Value(key{}) != nil {
		return ctx, true
	}
	opt := r.IsEdns0()
	if opt == nil {
		return ctx, false
	}
	options := len(opt.Option)
	opt.Option = slices.DeleteFunc(opt.Option, func(o dns.EDNS0) bool { return o.Option() == Option })
	if len(opt.Option) == options || !isLoopback(w.RemoteAddr()) {
		return ctx, false
	}
	return context.WithValue(ctx, key{}, true), true
}

func isLoopback(address net.Addr) bool {
	host, _, err := net.SplitHostPort(address.String())
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// WithSource adds the source of the records to a response, which is the caller's own.
func WithSource(m *dns.Msg, source string) {
	opt := m.IsEdns0()
	if opt == nil {
		m.SetEdns0(dns.MinMsgSize, false)
		opt = m.IsEdns0()
	}
	opt.Option = append(opt.Option, &dns.EDNS0_LOCAL{Code: Option, Data: []byte(source)})
}
