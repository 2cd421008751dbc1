package withhold

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

const config = "withhold 10.0.0.0/8 127.0.0.0/8 fc00::/7 ::ffff:0:0/96 {\n except 10.77.0.0/16\n}"

// ask returns the response of the plugin if answer and extra are the truth. It also returns the truth as it is
// afterwards.
func ask(t *testing.T, qtype uint16, answer, extra []string) (got, truth *dns.Msg) {
	t.Helper()
	h, err := parse(caddy.NewTestController("dns", config))
	if err != nil {
		t.Fatal(err)
	}
	truth = new(dns.Msg)
	h.Next = plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		truth.SetReply(r)
		truth.AuthenticatedData = true
		for _, s := range answer {
			truth.Answer = append(truth.Answer, record(t, s))
		}
		for _, s := range extra {
			truth.Extra = append(truth.Extra, record(t, s))
		}
		return dns.RcodeSuccess, w.WriteMsg(truth)
	})
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if _, err := h.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion("www.example.org.", qtype)); err != nil {
		t.Fatal(err)
	}
	return rec.Msg, truth
}

func record(t *testing.T, s string) dns.RR {
	t.Helper()
	rr, err := dns.NewRR(s)
	if err != nil {
		t.Fatal(err)
	}
	return rr
}

func texts(rrs []dns.RR) []string {
	var out []string
	for _, rr := range rrs {
		out = append(out, strings.ReplaceAll(rr.String(), "\t", " "))
	}
	return out
}

func TestRefusedAddressesAreTakenOutAndOthersStayInOrder(t *testing.T) {
	const alias = "www.example.org. 60 IN CNAME host.example.org."
	for _, tc := range []struct {
		name         string
		qtype        uint16
		answer, want []string
	}{
		{"a public answer is untouched", dns.TypeA,
			[]string{alias, "host.example.org. 60 IN A 192.0.2.7"}, []string{alias, "host.example.org. 60 IN A 192.0.2.7"}},
		{"the address behind a dead one is taken out", dns.TypeA,
			[]string{alias, "host.example.org. 60 IN A 192.0.2.7", "host.example.org. 60 IN A 127.0.0.1", "host.example.org. 60 IN A 192.0.2.8"},
			[]string{alias, "host.example.org. 60 IN A 192.0.2.7", "host.example.org. 60 IN A 192.0.2.8"}},
		{"an exception stays", dns.TypeA,
			[]string{"www.example.org. 60 IN A 10.77.0.1", "www.example.org. 60 IN A 10.78.0.1"}, []string{"www.example.org. 60 IN A 10.77.0.1"}},
		{"when none is left, nobody's address says so", dns.TypeA,
			[]string{alias, "host.example.org. 60 IN A 10.1.2.3", "host.example.org. 60 IN A 10.1.2.4"}, []string{alias, "host.example.org. 60 IN A 192.0.0.8"}},
		{"IPv6 is judged too", dns.TypeAAAA,
			[]string{"www.example.org. 60 IN AAAA 2001:db8::1", "www.example.org. 60 IN AAAA fd00::1"}, []string{"www.example.org. 60 IN AAAA 2001:db8::1"}},
		{"IPv4 in IPv6 is judged as IPv6", dns.TypeAAAA,
			[]string{"www.example.org. 60 IN AAAA ::ffff:192.0.2.7"}, nil},
		{"other types are untouched", dns.TypeTXT,
			[]string{`www.example.org. 60 IN TXT "127.0.0.1"`}, []string{`www.example.org. 60 IN TXT "127.0.0.1"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, truth := ask(t, tc.qtype, tc.answer, []string{"ns.example.org. 60 IN A 127.0.0.1", "ns.example.org. 60 IN A 192.0.2.9"})
			if !slices.Equal(texts(got.Answer), tc.want) {
				t.Errorf("Answer is %q, want %q", texts(got.Answer), tc.want)
			}
			if want := []string{"ns.example.org. 60 IN A 192.0.2.9"}; !slices.Equal(texts(got.Extra), want) {
				t.Errorf("Additional section is %q, want %q", texts(got.Extra), want)
			}
			if !slices.Equal(texts(truth.Answer), tc.answer) || len(truth.Extra) != 2 || !truth.AuthenticatedData {
				t.Errorf("The truth was changed, which a cache may share: %v", truth)
			}
			if got.AuthenticatedData {
				t.Error("A changed response claims to be authenticated")
			}
		})
	}
}

func TestAnAnswerWithNothingToTakeOutIsTheSameMessage(t *testing.T) {
	got, truth := ask(t, dns.TypeA, []string{"www.example.org. 60 IN A 192.0.2.7"}, nil)
	if got != truth || !got.AuthenticatedData {
		t.Errorf("Got %v, want the message untouched", got)
	}
}

func TestTheSyntaxIsStrict(t *testing.T) {
	for input, want := range map[string]string{
		"withhold":                                              "Wrong argument count",
		"withhold 10.0.0.1":                                     "'10.0.0.1' is not a range",
		"withhold 10.0.0.0/8 {\n except\n}":                     "Wrong argument count",
		"withhold 10.0.0.0/8 {\n accept 10.0.0.0/9\n}":          "unknown property 'accept'",
		"withhold 10.0.0.0/8\nwithhold 10.0.0.0/8":              "can only be used once",
		"withhold 10.0.0.0/8 {\n except 10.0.0.0/9 fd00::/8\n}": "",
	} {
		_, err := parse(caddy.NewTestController("dns", input))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", input, err, want)
		}
	}
}
