package longhaul

import (
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"example.org/longhaul/coredns-plugin/steer"

	"github.com/miekg/dns"
)

func TestMetricsAreNamedAsPrometheusWants(t *testing.T) {
	for _, c := range []prometheus.Collector{rewrites, suppressions, skips, ownAnswers, canaryAnswers, steering, proxyUp,
		healthcheckFailures, entries, reloadTime, listRefused, reloadFailures} {
		problems, err := testutil.CollectAndLint(c)
		if err != nil || len(problems) > 0 {
			t.Errorf("Linter found %v, error %v", problems, err)
		}
	}
}

func TestEachServerHasCountersOfItsOwn(t *testing.T) {
	var c counters
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for _, server := range []string{"dns://:1", "dns://:2", "dns://:3"} {
				c.of(server).count(dns.TypeA, steer.LeftClient)
			}
		})
	}
	all.Wait()
	for _, server := range []string{"dns://:1", "dns://:2", "dns://:3"} {
		if n := testutil.ToFloat64(skips.WithLabelValues(server, "client")); n != 4 {
			t.Errorf("Server %s counted %v of 4", server, n)
		}
	}
	if first, second := c.of("dns://:1"), c.of("dns://:1"); first != second {
		t.Error("The counters of a server are looked up again for each query")
	}
}

func TestEveryVerdictHasAName(t *testing.T) {
	seen := map[string]bool{}
	for v := steer.Steered; v < steer.Verdicts; v++ {
		if v.String() == "" || seen[v.String()] {
			t.Errorf("Verdict %d is named %q", v, v)
		}
		seen[v.String()] = true
	}
}
