// Package metricsocket counts queries as the stock plugin prometheus does, and serves the metrics on a Unix socket. The
// stock plugin listens on TCP alone, where every user of the machine and every page in a browser there reaches it.
package metricsocket

import (
	"errors"
	"runtime"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"

	"github.com/prometheus/client_golang/prometheus"
)

const pluginName = "metrics_socket"

func init() { plugin.Register(pluginName, setup) }

func setup(c *caddy.Controller) error {
	path, m, err := parse(c)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	// The socket belongs to the process. A reload, also one that fails, leaves it open.
	c.OnStartup(func() error { return shared.serve(path) })
	c.OnFinalShutdown(shared.close)
	showBuild()
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		m.Next = next
		return m
	})
	return nil
}

// parse reads this syntax:
//
//	metrics_socket PATH
func parse(c *caddy.Controller) (path string, m *metrics.Metrics, err error) {
	// The handler alone counts. Without its OnStartup, it listens nowhere.
	m = metrics.New("")
	for i := 0; c.Next(); i++ {
		if i > 0 {
			return "", nil, plugin.ErrOnce
		}
		for _, zone := range plugin.OriginsFromArgsOrServerBlock(nil, c.ServerBlockKeys) {
			m.AddZone(zone)
		}
		if !c.Args(&path) || c.NextArg() {
			return "", nil, c.ArgErr()
		}
		if c.NextBlock() {
			return "", nil, c.Errf("unknown property '%s': metrics_socket has none", c.Val())
		}
	}
	return path, m, nil
}

// showBuild sets the version, which the stock plugin sets only where it is in the Corefile. The gauge is registered, but
// its variable is not exported.
func showBuild() {
	labels := []string{"version", "revision", "goversion"}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace,
		Name:      "build_info",
		Help:      "A metric with a constant '1' value labeled by version, revision, and goversion from which CoreDNS was built.",
	}, labels)
	var known prometheus.AlreadyRegisteredError
	if errors.As(prometheus.Register(build), &known) {
		if same, ok := known.ExistingCollector.(*prometheus.GaugeVec); ok {
			build = same
		}
	}
	build.WithLabelValues(coremain.CoreVersion, coremain.GitCommit, runtime.Version()).Set(1)
}
