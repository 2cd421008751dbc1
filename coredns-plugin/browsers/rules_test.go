package browsers

import "testing"

func TestTheRulesAreATable(t *testing.T) {
	of := func(name string) Lookup { return Lookup{Name: name} }
	for _, c := range []struct {
		lookup Lookup
		want   Outcome
	}{
		{of("www.example.org."), Instant},
		{of("WWW.Example.ORG."), Instant},
		{of("example.org."), Instant},
		{of("a.b.example.co.uk."), Instant},
		{of("me.github.io."), Instant},
		{of("xn--bcher-kva.example.de."), Instant},
		{of("foo_bar.example.org."), Instant},
		{Lookup{Name: "www.example.org.", Bypassed: true}, Client},
		{Lookup{Name: "www.example.org.", Excepted: true}, Except},
		{Lookup{Name: "www.example.org.", Down: true}, Down},
		{Lookup{Name: "www.example.org.", Validates: true}, Validates},
		{of("."), SingleLabel},
		{of("com."), SingleLabel},
		{of("printer."), SingleLabel},
		{of("dhqwxkzjrt."), SingleLabel}, // Chromium looks whether a network forges responses
		{of("_dns.resolver.arpa."), Underscore},
		{of("_443._https.www.example.org."), Underscore},
		{of("www._x.example.org."), Underscore},
		{of(`w\.w.example.org.`), NoHost},
		{of("w w.example.org."), NoHost},
		{of("wpad.example.org."), LocalLabel},
		{of("isatap.example.org."), LocalLabel},
		{of("wpad2.example.org."), Instant},
		{of("4.3.2.1.in-addr.arpa."), SpecialUse},
		{of("1.0.ip6.arpa."), SpecialUse},
		{of("router.home.arpa."), SpecialUse},
		{of("printer.local."), SpecialUse},
		{of("www.localhost."), SpecialUse},
		{of("www.page.test."), SpecialUse},
		{of("www.page.example."), SpecialUse},
		{of("www.page.invalid."), SpecialUse},
		{of("abcdef.onion."), SpecialUse},
		{of("nas.lan."), SpecialUse},
		{of("db.internal."), SpecialUse},
		{of("www.fritz.box."), Instant}, // a public suffix today: `dns.except` is for it
		{of("host.notasuffix."), NoSuffix},
		{of("198.51.100.7."), NoSuffix},
		{of("1-2-3-4.abc.plex.direct."), PrivateSuffix},
		{of("10.0.0.1.nip.io."), PrivateSuffix},
		{of("notplex.direct."), Instant},
	} {
		if got := c.lookup.Judge(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.lookup, got, c.want)
		}
	}
}

func TestEveryOutcomeHasAWordAndAMeaningOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for o := range Outcomes {
		if o.String() == "" || o.Meaning() == "" || seen[o.String()] {
			t.Errorf("outcome %d: %q, %q", o, o.String(), o.Meaning())
		}
		seen[o.String()] = true
	}
}
