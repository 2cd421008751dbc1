package remember

import (
	"sync"

	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return promauto.NewGauge(prometheus.GaugeOpts{Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help})
}

var (
	hits            = counter("hits_total", "Counter of queries answered from memory, by age: fresh or stale.", "server", "age")
	askedTotal      = counter("asked_total", "Counter of queries sent on, by reason: a client waits (new), or a stale response is refreshed (refresh).", "server", "reason")
	refreshFailures = counter("refresh_failures_total", "Counter of refreshes without a response that says something about the name.", "server")
	bytesTaken      = gauge("bytes", "Bytes that the memory takes.")
	answersKept     = gauge("answers", "Number of responses in the memory.")
	saveFailures    = promauto.NewCounter(prometheus.CounterOpts{Namespace: plugin.Namespace, Subsystem: pluginName, Name: "save_failures_total",
		Help: "Counter of failed attempts to save the memory."})
)

// counters are those of a server.
type counters struct{ fresh, stale, asked, refreshed, failed prometheus.Counter }

var byServer sync.Map

// countersOf returns the counters of server, as metrics.WithServer names it.
func countersOf(server string) *counters {
	if known, ok := byServer.Load(server); ok {
		return known.(*counters)
	}
	known, _ := byServer.LoadOrStore(server, &counters{
		fresh: hits.WithLabelValues(server, "fresh"), stale: hits.WithLabelValues(server, "stale"),
		asked: askedTotal.WithLabelValues(server, "new"), refreshed: askedTotal.WithLabelValues(server, "refresh"),
		failed: refreshFailures.WithLabelValues(server),
	})
	return known.(*counters)
}
