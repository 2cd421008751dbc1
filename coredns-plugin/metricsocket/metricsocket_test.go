package metricsocket

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// request sends a request to the socket at path.
func request(path, method, target string) (int, string, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}
	r, err := http.NewRequest(method, "http://localhost"+target, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func TestTheMetricsAreServedOnASocketOfTheOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "coredns.sock")
	// What a killed process leaves behind.
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var s server
	for range 2 {
		if err := s.serve(path); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("Mode is %v, %v", info, err)
	}
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/metrics", 200}, {"HEAD", "/metrics", 200}, {"POST", "/metrics", 405}, {"GET", "/", 404},
		{"GET", "/debug/pprof/", 404},
	} {
		if status, _, err := request(path, c.method, c.target); err != nil || status != c.status {
			t.Errorf("%s %s has status %d, %v, want %d", c.method, c.target, status, err, c.status)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := request(path, "GET", "/metrics"); err == nil {
		t.Error("The socket is still served")
	}
}

func TestQueriesAreCountedAndTheVersionIsShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "coredns.sock")
	c := caddy.NewTestController("dns", "metrics_socket "+path)
	c.ServerBlockKeys = []string{"."}
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	handler := dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeSuccess, nil))
	if _, err := handler.ServeDNS(context.Background(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)); err != nil {
		t.Fatal(err)
	}
	if err := shared.serve(path); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shared.close() }()
	_, page, err := request(path, "GET", "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\ncoredns_dns_requests_total{", "\ncoredns_build_info{", "\nprocess_start_time_seconds "} {
		if !strings.Contains(page, want) {
			t.Errorf("No %q in the metrics:\n%s", strings.TrimSpace(want), page)
		}
	}
}

func TestOnePathIsTheWholeSyntax(t *testing.T) {
	for _, wrong := range []string{"metrics_socket", "metrics_socket a b", "metrics_socket a {\n b\n}", "metrics_socket a\nmetrics_socket b"} {
		if _, _, err := parse(caddy.NewTestController("dns", wrong)); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
