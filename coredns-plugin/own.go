package longhaul

import (
	"context"

	"github.com/coredns/coredns/plugin/metrics"

	"example.org/longhaul/coredns-plugin/names"
	"example.org/longhaul/coredns-plugin/steer"

	"github.com/miekg/dns"
)

// ownNames are the proxy's own names, which the objects of rewritten pages are fetched from.
type ownNames struct {
	names *names.Set
	alpn  []string // announced in their HTTPS record; without any there is no such record
}

// serveOwn serves a query for one of the proxy's own names, from any client and also while the proxy is down: pages already
// rewritten need the name to resolve. Only address and HTTPS queries come here; other types are the truth's.
func (l *Longhaul) serveOwn(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	l.counts.of(metrics.WithServer(ctx)).own.Inc()
	return dns.RcodeSuccess, w.WriteMsg(steer.OwnName(queryOf(w, r), l.proxy.serving(), l.own.alpn))
}

// canaries are the names by which clients ask whether the network wants its DNS used instead of one of their own choice:
// Firefox (DNS over HTTPS) and Apple (iCloud Private Relay). A negative answer says yes.
var canaries = mustSet("=use-application-dns.net", "=mask.icloud.com", "=mask-h2.icloud.com")

func mustSet(entries ...string) *names.Set {
	b := names.NewBuilder(0)
	for _, e := range entries {
		if err := b.Add(e); err != nil {
			panic(err) // a constant of this file is wrong
		}
	}
	return b.Set()
}

func (l *Longhaul) serveCanary(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	l.counts.of(metrics.WithServer(ctx)).canaries.Inc()
	return dns.RcodeSuccess, w.WriteMsg(steer.Canary(queryOf(w, r)))
}
