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
	hits            = counter("hits_total", "Counter of queries answered from memory, by age: fresh or stale, or pushed for the first query of a response that the ground sent unasked.", "server", "age")
	askedTotal      = counter("asked_total", "Counter of queries sent on, by reason: a client waits (new), or a stale response is refreshed (refresh).", "server", "reason")
	refreshFailures = counter("refresh_failures_total", "Counter of refreshes without a response that says something about the name.", "server")
	pushedTotal     = counter("pushed_total", "Counter of responses that the ground sent unasked, by fate: kept, known (there was a fresh one), or refused (it says nothing about its name).", "fate")
	bytesTaken      = gauge("bytes", "Bytes that the memory takes.")
	answersKept     = gauge("answers", "Number of responses in the memory.")
	saveFailures    = promauto.NewCounter(prometheus.CounterOpts{Namespace: plugin.Namespace, Subsystem: pluginName, Name: "save_failures_total",
		Help: "Counter of failed attempts to save the memory."})
)

var (
	pushedBytes = promauto.NewCounter(prometheus.CounterOpts{Namespace: plugin.Namespace, Subsystem: pluginName, Name: "pushed_bytes_total",
		Help: "Counter of bytes of responses that the ground sent unasked."})
	pushedUsed = promauto.NewCounter(prometheus.CounterOpts{Namespace: plugin.Namespace, Subsystem: pluginName, Name: "pushed_used_bytes_total",
		Help: "Counter of bytes of such responses that a client asked for later."})
	pushedStream = gauge("pushed_stream", "1 while the ground may send responses unasked, else 0.")
)

// counters are those of a server.
type counters struct{ fresh, stale, pushed, asked, refreshed, failed prometheus.Counter }

var byServer sync.Map

// countersOf returns the counters of server, as metrics.WithServer names it.
func countersOf(server string) *counters {
	if known, ok := byServer.Load(server); ok {
		return known.(*counters)
	}
	known, _ := byServer.LoadOrStore(server, &counters{
		fresh: hits.WithLabelValues(server, "fresh"), stale: hits.WithLabelValues(server, "stale"),
		pushed: hits.WithLabelValues(server, "pushed"),
		asked:  askedTotal.WithLabelValues(server, "new"), refreshed: askedTotal.WithLabelValues(server, "refresh"),
		failed: refreshFailures.WithLabelValues(server),
	})
	return known.(*counters)
}
