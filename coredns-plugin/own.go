package longhaul

import (
	"context"

	"github.com/coredns/coredns/plugin/metrics"

	"example.org/longhaul/coredns-plugin/names"

	"github.com/miekg/dns"
)

// ownTTL is the TTL of answers about the proxy's own names, in seconds: they change only with the configuration.
const ownTTL = 300

// ownNames are the proxy's own names, which the objects of rewritten pages are fetched from.
type ownNames struct {
	names *names.Set
	alpn  []string // announced in their HTTPS record; without any there is no such record
}

// answerOwn answers for one of the proxy's own names, whoever asks and whether or not the proxy answers: pages already
// rewritten need the name to resolve. Only address and HTTPS queries come here; what else the name has is the truth's.
func (l *Longhaul) answerOwn(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	q := r.Question[0]
	m := answerTo(r)
	switch q.Qtype {
	case dns.TypeHTTPS:
		if len(l.own.alpn) > 0 {
			m.Answer = []dns.RR{&dns.HTTPS{SVCB: dns.SVCB{
				Hdr:      dns.RR_Header{Name: q.Name, Rrtype: dns.TypeHTTPS, Class: dns.ClassINET, Ttl: ownTTL},
				Priority: 1, Target: ".",
				Value: []dns.SVCBKeyValue{&dns.SVCBAlpn{Alpn: l.own.alpn}},
			}}}
		}
	default:
		var leases []lease
		for _, addr := range l.proxy.serving().of(q.Qtype) {
			leases = append(leases, lease{addr, ownTTL})
		}
		m.Answer = appendRecords(m.Answer, q.Name, leases)
	}
	if len(m.Answer) == 0 {
		m.Ns = []dns.RR{soaFor(q.Name, ownTTL)}
	}
	l.counts.of(metrics.WithServer(ctx)).own.Inc()
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// canaryTTL is the TTL of the answers that ask browsers to use this resolver, in seconds.
const canaryTTL = 300

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

func (l *Longhaul) answerCanary(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := answerTo(r)
	m.Ns = []dns.RR{soaFor(r.Question[0].Name, canaryTTL)}
	l.counts.of(metrics.WithServer(ctx)).canaries.Inc()
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func answerTo(r *dns.Msg) *dns.Msg {
	m := new(dns.Msg)
	m.SetReply(r)
	m.RecursionAvailable = true // other types of the same name are resolved
	return m
}
