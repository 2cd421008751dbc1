// Package encrypted implements a plugin for lookups over TLS, HTTPS and QUIC (RFC 7858, 8484, 9250).
//
// CoreDNS has the servers. The plugin gives them certificates, which it reads again when their files change. It tells
// clients of the servers by SVCB records (RFC 9461, 9462), and makes responses fit a transport that has no limit of UDP.
package encrypted

import (
	"context"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const pluginName = "encrypted"

// clock is replaced by tests.
var clock = time.Now

var designations = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace,
	Subsystem: pluginName,
	Name:      "designations_total",
	Help:      "Counter of responses that name the encrypted servers.",
}, []string{"server"})

// Encrypted is the plugin's handler.
type Encrypted struct {
	Next plugin.Handler

	store     *store
	announced announcement
}

// Name implements the plugin.Handler interface.
func (e *Encrypted) Name() string { return pluginName }

// ServeDNS implements the plugin.Handler interface.
func (e *Encrypted) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if isEncrypted(ctx) {
		w = newWriter(w, r)
	}
	if designation := e.designation(r); designation != nil {
		designations.WithLabelValues(metrics.WithServer(ctx)).Inc()
		return dns.RcodeSuccess, w.WriteMsg(designation)
	}
	return plugin.NextOrFailure(e.Name(), e.Next, ctx, w, r)
}

// isEncrypted reports whether a query came to one of the encrypted servers.
func isEncrypted(ctx context.Context) bool {
	server, ok := ctx.Value(dnsserver.Key{}).(*dnsserver.Server)
	return ok && !strings.HasPrefix(server.Addr, transport.DNS+"://")
}
