package slim

import (
	"slices"
	"strings"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
)

// registered are the directives of the plugins that are linked in.
func registered() []string {
	var names []string
	for _, name := range caddy.ListPlugins()["others"] {
		names = append(names, strings.TrimPrefix(name, "dns."))
	}
	slices.Sort(names)
	return names
}

func TestEveryLinkedPluginIsADirectiveAndEveryDirectiveIsLinked(t *testing.T) {
	want := slices.Sorted(slices.Values(dnsserver.Directives))
	if got := registered(); !slices.Equal(got, want) {
		for _, name := range got {
			if !slices.Contains(want, name) {
				t.Errorf("Plugin %s is linked in but missing from the directives: a Corefile could not use it", name)
			}
		}
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("Directive %s has no plugin linked in", name)
			}
		}
	}
}

func TestEveryIncludedDirectiveIsInTheChainOnce(t *testing.T) {
	for _, name := range included {
		if n := len(slices.DeleteFunc(slices.Clone(dnsserver.Directives), func(d string) bool { return d != name })); n != 1 {
			t.Errorf("Directive %s is in the chain %d times", name, n)
		}
	}
	if len(dnsserver.Directives) != len(included)+8 {
		t.Errorf("%d directives in the chain, want those included, encrypted, metrics_socket, tell, push, withhold, longhaul, remember and lookups", len(dnsserver.Directives))
	}
}

func TestLonghaulStandsImmediatelyBeforeLoadbalance(t *testing.T) {
	i := slices.Index(dnsserver.Directives, "longhaul")
	if i < 0 || i+1 >= len(dnsserver.Directives) || dnsserver.Directives[i+1] != "loadbalance" {
		t.Errorf("Chain is %v", dnsserver.Directives)
	}
}

func TestTheOrderOfTheOthersIsTheStockOrder(t *testing.T) {
	stock := []string{"root", "cancel", "prometheus", "errors", "loadbalance", "cache", "kubernetes", "forward"}
	want := []string{"root", "encrypted", "cancel", "metrics_socket", "prometheus", "errors", "tell", "push", "withhold", "longhaul", "loadbalance", "remember", "cache", "lookups", "forward"}
	if got := directives(stock); !slices.Equal(got, want) {
		t.Errorf("Chain is %v, want %v", got, want)
	}
}
