package push

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// reason is why a response is sent.
type reason string

const (
	byFollower   reason = "follows"
	byPage       reason = "page"
	byPopularity reason = "popular"
)

func counter(name, help string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help}, []string{"reason"})
}

func gauge(name, help string) prometheus.Gauge {
	return promauto.NewGauge(prometheus.GaugeOpts{Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help})
}

const reasons = " The reason: the name follows one that was asked (follows) or stands in an http page (page), or many clients ask for it (popular)."

var (
	answersSent    = counter("responses_total", "Counter of DNS responses that were sent to remotes before they asked."+reasons)
	bytesSent      = counter("bytes_total", "Counter of bytes of such responses."+reasons)
	sessions       = gauge("streams", "Number of remotes that take such responses now.")
	bytesTaken     = gauge("memory_bytes", "Bytes of what was learned, roughly.")
	namesKnown     = gauge("names", "Number of names that are known.")
	followersKnown = gauge("followers", "Number of pairs of a name and one that follows it.")
	saveFailures   = promauto.NewCounter(prometheus.CounterOpts{Namespace: plugin.Namespace, Subsystem: pluginName, Name: "save_failures_total",
		Help: "Counter of failed attempts to save what was learned."})
)
