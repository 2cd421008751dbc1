package longhaul

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/coredns/coredns/plugin/test"

	"example.org/longhaul/coredns-plugin/steer"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// listen accepts connections at addr until the returned function is called.
func listen(t *testing.T, addr string) (at netip.AddrPort, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = l.Close()
			<-done
		}
	}
	t.Cleanup(stop)
	return netip.MustParseAddrPort(l.Addr().String()), stop
}

// firstAddress is what a client gets for a listed name.
func firstAddress(t *testing.T, l *Longhaul) string {
	t.Helper()
	m := ask(t, l, question("example.org.", dns.TypeA), &test.ResponseWriter{})
	if len(m.Answer) == 0 {
		t.Fatalf("No answer: %s", m)
	}
	return m.Answer[0].(*dns.A).A.String()
}

const origin = "203.0.113.1"

func TestSteeringStopsWhileTheProxyDoesNotAnswer(t *testing.T) {
	at, stop := listen(t, "127.0.0.1:0")
	l := newPlugin(t, fmt.Sprintf("longhaul {\nproxy 127.0.0.1\nmatch example.org\nown pep.example.net\nhealth %d 100ms\n}", at.Port()),
		answering("example.org. 300 IN A "+origin))
	if got := firstAddress(t, l); got != "127.0.0.1" {
		t.Fatalf("With a live proxy the first query gets %s", got)
	}
	if !l.Ready() {
		t.Error("Not ready")
	}
	failed := testutil.ToFloat64(healthcheckFailures.WithLabelValues(at.String()))
	stop()
	eventually(t, "steering stops", func() bool { return firstAddress(t, l) == origin })
	if n := testutil.ToFloat64(healthcheckFailures.WithLabelValues(at.String())) - failed; n < failsToStop {
		t.Errorf("Stopped after %v failed checks", n)
	}
	if testutil.ToFloat64(proxyUp.WithLabelValues(at.String())) != 0 || testutil.ToFloat64(steering) != 0 {
		t.Error("Metrics say that names are steered")
	}
	own := ask(t, l, question("pep.example.net.", dns.TypeA), &test.ResponseWriter{})
	if got := words(own.Answer); got != "pep.example.net. 300 IN A 127.0.0.1" {
		t.Errorf("The proxy's own name gets %q", got)
	}
	listen(t, at.String())
	eventually(t, "steering starts again", func() bool { return firstAddress(t, l) == "127.0.0.1" })
	if testutil.ToFloat64(proxyUp.WithLabelValues(at.String())) != 1 || testutil.ToFloat64(steering) != 1 {
		t.Error("Metrics say that names are not steered")
	}
}

func TestNothingIsSteeredToAProxyThatWasNeverUp(t *testing.T) {
	at, stop := listen(t, "127.0.0.1:0")
	stop()
	l := newPlugin(t, fmt.Sprintf("longhaul {\nproxy 198.51.100.12\nmatch example.org\nmode replace\nhealth %s\n}", at),
		answering("example.org. 300 IN A "+origin))
	if got := firstAddress(t, l); got != origin {
		t.Errorf("The first query gets %s", got)
	}
}

func TestOnlyAddressesThatAnswerAreUsed(t *testing.T) {
	at, _ := listen(t, "127.0.0.1:0")
	other, stopOther := listen(t, fmt.Sprintf("127.0.0.2:%d", at.Port()))
	l := newPlugin(t, fmt.Sprintf("longhaul {\nproxy 127.0.0.2 127.0.0.1\nmatch example.org\nmode replace\nhealth %d 100ms\n}", at.Port()),
		answering("example.org. 300 IN A "+origin))
	if got := firstAddress(t, l); got != "127.0.0.2" {
		t.Fatalf("First address is %s", got)
	}
	stopOther()
	eventually(t, "the dead address is left out", func() bool { return firstAddress(t, l) == "127.0.0.1" })
	listen(t, other.String())
	eventually(t, "it is first again", func() bool { return firstAddress(t, l) == "127.0.0.2" })
}

func TestOneListenerMayStandForAllAddresses(t *testing.T) {
	at, stop := listen(t, "127.0.0.1:0")
	l := newPlugin(t, fmt.Sprintf("longhaul {\nproxy 198.51.100.12 2001:db8::12\nmatch example.org\nhealth %s 100ms\n}", at),
		answering("example.org. 300 IN A "+origin))
	if got := firstAddress(t, l); got != "198.51.100.12" {
		t.Errorf("First address is %s", got)
	}
	stop()
	eventually(t, "steering stops", func() bool { return firstAddress(t, l) == origin })
}

func TestOneFailedCheckChangesNothing(t *testing.T) {
	at, stop := listen(t, "127.0.0.1:0")
	one := &listener{at: at, addrs: []netip.Addr{at.Addr()}}
	for _, step := range []struct {
		alive, up bool
	}{{true, true}, {false, true}, {true, true}, {false, true}, {false, false}, {false, false}, {true, true}} {
		if step.alive {
			stop()
			_, stop = listen(t, at.String())
		} else {
			stop()
		}
		if good := checkAll(t.Context(), []*listener{one}); (good.Len() == 1) != step.up {
			t.Fatalf("With a listener that is %+v: %v addresses", step, good.Len())
		}
	}
}

func TestPauseStopsSteeringByHand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pause")
	l := newPlugin(t, "longhaul {\nproxy 198.51.100.12\nmatch example.org\npause "+file+"\n}", answering("example.org. 300 IN A "+origin))
	if got := firstAddress(t, l); got != "198.51.100.12" {
		t.Fatalf("Without the file the query gets %s", got)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "steering stops", func() bool { return firstAddress(t, l) == origin })
	if _, left := l.proxy.now(); left != steer.LeftPaused {
		t.Errorf("The reason is %v", left)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "steering starts again", func() bool { return firstAddress(t, l) == "198.51.100.12" })
}

func TestAServerThatStopsDoesNotTakeTheProxyForDead(t *testing.T) {
	at, _ := listen(t, "127.0.0.1:0")
	one := &listener{at: at, addrs: []netip.Addr{at.Addr()}}
	p := &proxy{listeners: []*listener{one}, interval: defaultInterval}
	p.all.Add(at.Addr())
	p.look(t.Context())
	ended, stop := context.WithCancel(t.Context())
	stop()
	for range failsToStop + 1 {
		p.look(ended)
	}
	if _, left := p.now(); left != 0 {
		t.Errorf("Not steering: %v", left)
	}
}
