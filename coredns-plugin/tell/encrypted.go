package tell

import (
	"strings"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// encrypted are names of public resolvers over https and TLS, as browsers and systems offer them.
var encrypted = map[string]bool{
	"1dot1dot1dot1.cloudflare-dns.com.": true,
	"chrome.cloudflare-dns.com.":        true,
	"cloudflare-dns.com.":               true,
	"dns.adguard-dns.com.":              true,
	"dns.google.":                       true,
	"dns.nextdns.io.":                   true,
	"dns.quad9.net.":                    true,
	"dns11.quad9.net.":                  true,
	"doh.cleanbrowsing.org.":            true,
	"doh.dns.apple.com.":                true,
	"doh.opendns.com.":                  true,
	"doh.xfinity.com.":                  true,
	"mozilla.cloudflare-dns.com.":       true,
	"one.one.one.one.":                  true,
}

var encryptedLookups = promauto.NewCounter(prometheus.CounterOpts{
	Namespace: plugin.Namespace,
	Subsystem: "longhaul",
	Name:      "encrypted_resolver_lookups_total",
	Help:      "Counter of queries for the addresses of public resolvers over https or TLS.",
})

// count counts a query for the addresses of such a resolver.
func count(question dns.Question) {
	switch question.Qtype {
	case dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS:
		if encrypted[strings.ToLower(question.Name)] {
			encryptedLookups.Inc()
		}
	}
}
