package tell

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// ask returns the text of a response over the wire, and its code. -1 is a query that another plugin got.
func ask(t *testing.T, config, name string, qtype uint16) (string, int) {
	t.Helper()
	h, err := parse(caddy.NewTestController("dns", config))
	if err != nil {
		t.Fatal(err)
	}
	passed := false
	h.Next = plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		passed = true
		return dns.RcodeSuccess, w.WriteMsg(new(dns.Msg).SetReply(r))
	})
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if _, err := h.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion(name, qtype)); err != nil {
		t.Fatal(err)
	}
	if passed {
		return "", -1
	}
	wire, err := rec.Msg.Pack()
	if err != nil {
		t.Fatal(err)
	}
	got := new(dns.Msg)
	if err := got.Unpack(wire); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, rr := range got.Answer {
		text += strings.Join(rr.(*dns.TXT).Txt, "")
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(text), got.Rcode
}

// TestCosts compares files with and without the figures of `longhaul status --why`.
func TestCosts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "told.json")
	clock = func() time.Time { return time.Unix(1700000000, 0) }
	defer func() { clock = time.Now }()
	for costs, want := range map[string]string{
		"":                        `{"now":1700000000,"problems":[]}`,
		`,"costs":{"requests":7}`: `{"now":1700000000,"problems":[],"costs":{"requests":7}}`,
	} {
		if err := os.WriteFile(file, []byte(`{"run":"0a1b","problems":[]`+costs+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, _ := ask(t, "tell "+file+" problems", Problems, dns.TypeTXT); text != want {
			t.Errorf("%q: got %s, want %s", costs, text, want)
		}
	}
}

func TestTell(t *testing.T) {
	file := filepath.Join(t.TempDir(), "told.json")
	clock = func() time.Time { return time.Unix(1700000000, 0) }
	defer func() { clock = time.Now }()
	long := `[{"text":"` + strings.Repeat("a resolver is \\u0022silent\\u0022. ", 30) + `"}]`
	if err := os.WriteFile(file, []byte(`{"run":"0a1b","problems":`+long+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config, name string
		qtype        uint16
		text         string
		rcode        int
	}{
		{"tell " + file + " problems", Problems, dns.TypeTXT, `{"now":1700000000,"problems":` + long + `}`, dns.RcodeSuccess},
		{"tell " + file + " problems", "Problems.Pair.invalid.", dns.TypeTXT, `{"now":1700000000,"problems":` + long + `}`, dns.RcodeSuccess},
		{"tell " + file + " problems", Problems, dns.TypeA, "", dns.RcodeSuccess},
		{"tell " + file + " problems", Loop, dns.TypeTXT, "0a1b", dns.RcodeSuccess},
		{"tell " + file + " problems", "www.example.org.", dns.TypeTXT, "", -1},
		// Clients of an edge or a remote.
		{"tell " + file, Problems, dns.TypeTXT, "", dns.RcodeNameError},
		{"tell " + file, Loop, dns.TypeTXT, "0a1b", dns.RcodeSuccess},
		{"tell", Problems, dns.TypeTXT, "", dns.RcodeNameError},
		{"tell", Loop, dns.TypeTXT, "", -1},
		{"tell /nonexistent problems", Problems, dns.TypeTXT, "", dns.RcodeSuccess},
	} {
		if text, rcode := ask(t, c.config, c.name, c.qtype); text != c.text || rcode != c.rcode {
			t.Errorf("%s, %s: %q with code %d, want %q with code %d", c.config, c.name, text, rcode, c.text, c.rcode)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for _, config := range []string{"tell a b", "tell a problems c", "tell a\ntell b"} {
		if _, err := parse(caddy.NewTestController("dns", config)); err == nil {
			t.Errorf("%q is accepted", config)
		}
	}
}

func TestLookupsOfEncryptedResolversAreCounted(t *testing.T) {
	for _, c := range []struct {
		name  string
		qtype uint16
		more  float64
	}{
		{"dns.google.", dns.TypeA, 1},
		{"Mozilla.Cloudflare-DNS.com.", dns.TypeHTTPS, 1},
		{"dns.google.", dns.TypeNS, 0},
		{"www.example.org.", dns.TypeA, 0},
	} {
		before := testutil.ToFloat64(encryptedLookups)
		ask(t, "tell", c.name, c.qtype)
		if more := testutil.ToFloat64(encryptedLookups) - before; more != c.more {
			t.Errorf("%s counts %v, want %v", c.name, more, c.more)
		}
	}
}
