// Package slim links our plugins and a choice of stock plugins into a CoreDNS. Ours are longhaul, remember, lookups, push,
// tell, withhold, encrypted and metrics_socket. The stock ones resolve, cache, secure, observe and test. Left out are the plugins
// that bring whole cloud and cluster clients along, which make the stock binary four times as large.
package slim

import (
	"slices"

	"github.com/coredns/coredns/core/dnsserver"

	// The plugins. A directive must be in directives too, which a test compares.
	_ "example.org/longhaul/coredns-plugin"
	_ "example.org/longhaul/coredns-plugin/encrypted"
	_ "example.org/longhaul/coredns-plugin/lookups"
	_ "example.org/longhaul/coredns-plugin/metricsocket"
	_ "example.org/longhaul/coredns-plugin/push"
	_ "example.org/longhaul/coredns-plugin/remember"
	_ "example.org/longhaul/coredns-plugin/tell"
	_ "example.org/longhaul/coredns-plugin/withhold"
	_ "github.com/coredns/coredns/plugin/acl"
	_ "github.com/coredns/coredns/plugin/any"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/bufsize"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/cancel"
	_ "github.com/coredns/coredns/plugin/chaos"
	_ "github.com/coredns/coredns/plugin/debug"
	_ "github.com/coredns/coredns/plugin/dns64"
	_ "github.com/coredns/coredns/plugin/dnstap"
	_ "github.com/coredns/coredns/plugin/erratic"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/file"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/header"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/https"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/local"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metadata"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/minimal"
	_ "github.com/coredns/coredns/plugin/multisocket"
	_ "github.com/coredns/coredns/plugin/nsid"
	_ "github.com/coredns/coredns/plugin/pprof"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/rewrite"
	_ "github.com/coredns/coredns/plugin/root"
	_ "github.com/coredns/coredns/plugin/template"
	_ "github.com/coredns/coredns/plugin/timeouts"
	_ "github.com/coredns/coredns/plugin/tls"
	_ "github.com/coredns/coredns/plugin/transfer"
	_ "github.com/coredns/coredns/plugin/view"
	_ "github.com/coredns/coredns/plugin/whoami"
)

// included are the directives of the plugins above but for ours, in any order.
var included = []string{
	"acl", "any", "bind", "bufsize", "cache", "cancel", "chaos", "debug", "dns64", "dnstap", "erratic", "errors", "file",
	"forward", "header", "health", "hosts", "https", "loadbalance", "local", "log", "loop", "metadata", "minimal", "multisocket",
	"nsid", "pprof", "prometheus", "ready", "reload", "rewrite", "root", "template", "timeouts", "tls", "transfer", "view", "whoami",
}

func init() { dnsserver.Directives = directives(dnsserver.Directives) }

// directives returns the order of the plugin chain: the stock order of what is included, metrics_socket in the place of
// prometheus, remember in that of cache, lookups before forward, and our other plugins immediately before loadbalance.
// There longhaul sees the client's own question, and its answer comes out in front of what loadbalance shuffled. What is
// cached below both is the truth.
func directives(stock []string) []string {
	var chain []string
	for _, d := range stock {
		if d == "loadbalance" {
			chain = append(chain, "tell", "push", "withhold", "longhaul")
		}
		if d == "forward" {
			chain = append(chain, "lookups")
		}
		if d == "cache" {
			chain = append(chain, "remember")
		}
		if d == "cancel" {
			chain = append(chain, "encrypted")
		}
		if d == "prometheus" {
			chain = append(chain, "metrics_socket")
		}
		if slices.Contains(included, d) {
			chain = append(chain, d)
		}
	}
	return chain
}
