package longhaul

import (
	"sync/atomic"

	"github.com/coredns/coredns/plugin"

	"example.org/longhaul/coredns-plugin/browsers"
	"example.org/longhaul/coredns-plugin/steer"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	rewrites = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "rewrites_total",
		Help:      "Counter of answers in which the proxy's addresses were placed, or HTTPS records stripped.",
	}, []string{"server", "type"})
	suppressions = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "suppressed_total",
		Help:      "Counter of answers turned into \"no such data\" because they lead past the proxy.",
	}, []string{"server", "type"})
	skips = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "skips_total",
		Help:      "Counter of answers for listed names that were left as they are, by reason.",
	}, []string{"server", "reason"})
	ownAnswers = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "own_answers_total",
		Help:      "Counter of answers for the proxy's own names.",
	}, []string{"server"})
	canaryAnswers = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "canary_answers_total",
		Help:      "Counter of answers that ask clients to use this resolver instead of an encrypted one elsewhere.",
	}, []string{"server"})

	browserLookups = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "browser_lookups_total",
		Help:      "Counter of lookups of names on no list without a remembered response, by outcome: instant, or why they waited for the truth.",
	}, []string{"server", "outcome"})
	instantNamesNow = promauto.NewGauge(prometheus.GaugeOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "browser_names",
		Help:      "Number of names that have an address of their own, which a browser may still have.",
	})

	steering = promauto.NewGauge(prometheus.GaugeOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "steering",
		Help:      "Whether listed names are steered (1), or all answers pass as they are (0).",
	})
	proxyUp = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "proxy_up",
		Help:      "Whether the proxy's listener answers (1) or not (0).",
	}, []string{"to"})
	healthcheckFailures = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "healthcheck_failures_total",
		Help:      "Counter of failed connections to the proxy's listener.",
	}, []string{"to"})

	entries = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "entries",
		Help:      "Number of names in the list in use.",
	}, []string{"file"})
	reloadTime = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "reload_timestamp_seconds",
		Help:      "The timestamp of the last modification of the list in use.",
	}, []string{"file"})
	listRefused = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "list_refused",
		Help:      "1 while the file on disk is refused or missing, and an earlier list is in use.",
	}, []string{"file"})
	reloadFailures = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "reload_failures_total",
		Help:      "Counter of changed lists that were refused, or could not be read.",
	}, []string{"file"})
)

// counters finds the counters of a server address without the cost of looking labels up for every query. A handler serves
// few addresses, nearly always one.
type counters struct {
	known atomic.Pointer[[]*serverCounters]
}

type serverCounters struct {
	server        string
	own, canaries prometheus.Counter
	skips         [steer.Verdicts]prometheus.Counter
	a, aaaa, http typeCounters
	browsers      [browsers.Outcomes]prometheus.Counter
}

type typeCounters struct{ rewrites, suppressed prometheus.Counter }

// of returns the counters of server, as metrics.WithServer names it.
func (c *counters) of(server string) *serverCounters {
	known := c.known.Load()
	if known != nil {
		for _, s := range *known {
			if s.server == server {
				return s
			}
		}
	}
	// Two queries at once may both get here and one's addition be lost; it is made again by the next query.
	s := newServerCounters(server)
	grown := []*serverCounters{s}
	if known != nil {
		grown = append(grown, *known...)
	}
	c.known.Store(&grown)
	return s
}

func newServerCounters(server string) *serverCounters {
	s := &serverCounters{
		server:   server,
		own:      ownAnswers.WithLabelValues(server),
		canaries: canaryAnswers.WithLabelValues(server),
		a:        newTypeCounters(server, dns.TypeA),
		aaaa:     newTypeCounters(server, dns.TypeAAAA),
		http:     newTypeCounters(server, dns.TypeHTTPS),
	}
	for v := steer.LeftClient; v < steer.Verdicts; v++ {
		s.skips[v] = skips.WithLabelValues(server, v.String())
	}
	for o := browsers.Outcome(0); o < browsers.Outcomes; o++ {
		s.browsers[o] = browserLookups.WithLabelValues(server, o.String())
	}
	return s
}

func newTypeCounters(server string, qtype uint16) typeCounters {
	name := dns.TypeToString[qtype]
	return typeCounters{rewrites.WithLabelValues(server, name), suppressions.WithLabelValues(server, name)}
}

// count counts the outcome of one query for a listed name.
func (s *serverCounters) count(qtype uint16, what steer.Verdict) {
	t := &s.a
	switch qtype {
	case dns.TypeAAAA:
		t = &s.aaaa
	case dns.TypeHTTPS:
		t = &s.http
	}
	switch what {
	case steer.Steered, steer.Stripped:
		t.rewrites.Inc()
	case steer.Suppressed:
		t.suppressed.Inc()
	case steer.Kept:
	default:
		s.skips[what].Inc()
	}
}
