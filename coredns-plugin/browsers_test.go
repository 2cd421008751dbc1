package longhaul

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"example.org/longhaul/coredns-plugin/browsers"
	"example.org/longhaul/coredns-plugin/internal/explain"
	"example.org/longhaul/coredns-plugin/internal/meanwhile"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

const laptop = "192.0.2.10"

// farMemory is a memory of names that has no response until the test lets the truth come.
type farMemory struct {
	truth truth
	let   chan struct{}
}

func (f *farMemory) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	select {
	case <-f.let:
		return f.truth.ServeDNS(ctx, w, r)
	default:
	}
	select {
	case <-meanwhile.Missed(ctx):
		return dns.RcodeSuccess, meanwhile.ErrAnswered
	case <-f.let:
		return f.truth.ServeDNS(ctx, w, r)
	case <-ctx.Done():
		return dns.RcodeServerFailure, ctx.Err()
	}
}

// unlisted is a plugin with a table of its own, which answers first visits.
func unlisted(t *testing.T, more, within string, far *farMemory) *Longhaul {
	t.Helper()
	return newPlugin(t, "longhaul {\nproxy 198.51.100.12\nmatch listed.example.org\n"+more+"\nbrowsers "+within+"\n}", plugin.HandlerFunc(far.ServeDNS))
}

// lookup sends the queries of a lookup at once, and returns the responses to those that come before the truth does.
type lookup struct {
	mu   sync.Mutex
	done sync.WaitGroup
	got  map[uint16]*dns.Msg
}

func (k *lookup) send(t *testing.T, l *Longhaul, client, name string, qtypes ...uint16) {
	t.Helper()
	for _, qtype := range qtypes {
		k.query(t, l, client, question(name, qtype))
	}
}

func (k *lookup) query(t *testing.T, l *Longhaul, client string, r *dns.Msg) {
	t.Helper()
	qtype := r.Question[0].Qtype
	k.done.Go(func() {
		rec := dnstest.NewRecorder(&test.ResponseWriter{RemoteIP: client})
		if _, err := l.ServeDNS(t.Context(), rec, r); err != nil {
			t.Error(err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.got == nil {
			k.got = map[uint16]*dns.Msg{}
		}
		k.got[qtype] = rec.Msg
	})
}

func (k *lookup) of(qtype uint16) *dns.Msg {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.got[qtype]
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 500 {
		if holds() {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatal(what)
}

func outcomes(l *Longhaul, outcome browsers.Outcome) float64 {
	return testutil.ToFloat64(l.counts.of("").browsers[outcome])
}

func TestABrowsersFirstLookupIsAnsweredBeforeTheTruthAndTheNextOneByIt(t *testing.T) {
	far := &farMemory{truth: answering("www.example.org. 300 IN A 203.0.113.1"), let: make(chan struct{})}
	l := unlisted(t, "", "198.18.1.0/24", far)
	before := outcomes(l, browsers.Instant)
	var browser, program lookup
	program.send(t, l, "192.0.2.11", "www.example.org.", dns.TypeA, dns.TypeAAAA)
	browser.send(t, l, laptop, "www.example.org.", dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS)
	browser.done.Wait()
	a := browser.of(dns.TypeA)
	if len(a.Answer) != 1 || a.Answer[0].Header().Ttl != browsers.TTL {
		t.Fatalf("A: %v", a)
	}
	addr, _ := netip.AddrFromSlice(a.Answer[0].(*dns.A).A.To4())
	if !netip.MustParsePrefix("198.18.1.0/24").Contains(addr) {
		t.Errorf("the address is %v", addr)
	}
	for _, qtype := range []uint16{dns.TypeAAAA, dns.TypeHTTPS} {
		m := browser.of(qtype)
		if m.Rcode != dns.RcodeSuccess || len(m.Answer) != 0 || len(m.Ns) != 1 || m.Ns[0].(*dns.SOA).Minttl != browsers.TTL {
			t.Errorf("type %d: %v", qtype, m)
		}
	}
	if got := outcomes(l, browsers.Instant) - before; got != 3 {
		t.Errorf("%v responses are counted as instant", got)
	}
	if program.of(dns.TypeA) != nil || program.of(dns.TypeAAAA) != nil {
		t.Error("a program of another client is answered")
	}
	close(far.let)
	program.done.Wait()
	if got := program.of(dns.TypeA).Answer[0].String(); !strings.Contains(got, "203.0.113.1") {
		t.Errorf("the program gets %s", got)
	}
	var next lookup
	next.send(t, l, laptop, "www.example.org.", dns.TypeA, dns.TypeHTTPS)
	next.done.Wait()
	if got := next.of(dns.TypeA).Answer[0].String(); !strings.Contains(got, "203.0.113.1") {
		t.Errorf("the next lookup gets %s", got)
	}
}

func TestEachReasonKeepsALookupWaitingForTheTruth(t *testing.T) {
	signed := func(name string, qtype uint16) *dns.Msg {
		r := question(name, qtype)
		r.SetEdns0(1232, true)
		return r
	}
	unrecursive := func(name string, qtype uint16) *dns.Msg {
		r := question(name, qtype)
		r.RecursionDesired = false
		return r
	}
	for _, c := range []struct {
		name, client, more string
		make               func(string, uint16) *dns.Msg
		want               browsers.Outcome
	}{
		{"bank.example.org.", laptop, "except bank.example.org", question, browsers.Except},
		{"www.example.org.", "192.0.2.99", "bypass 192.0.2.99", question, browsers.Client},
		{"www.example.org.", "198.51.100.12", "", question, browsers.Client},
		{"www.example.org.", "127.0.0.1", "", question, browsers.Client},
		{"www.example.org.", laptop, "", signed, browsers.Validates},
		{"www.example.org.", laptop, "", unrecursive, browsers.Validates},
		{"printer.", laptop, "", question, browsers.SingleLabel},
		{"nas.local.", laptop, "", question, browsers.SpecialUse},
		{"www.example.org.", laptop, "pause " + t.TempDir(), question, browsers.Down},
	} {
		far := &farMemory{truth: answering(c.name + " 300 IN A 203.0.113.1"), let: make(chan struct{})}
		l := unlisted(t, c.more, "198.18.2.0/24", far)
		before := outcomes(l, c.want)
		var visit lookup
		visit.query(t, l, c.client, c.make(c.name, dns.TypeA))
		visit.query(t, l, c.client, c.make(c.name, dns.TypeHTTPS))
		until(t, c.name+" is not counted as "+c.want.String(), func() bool { return outcomes(l, c.want)-before == 2 })
		if visit.of(dns.TypeA) != nil || visit.of(dns.TypeHTTPS) != nil {
			t.Errorf("%s is answered", c.name)
		}
		close(far.let)
		visit.done.Wait()
		if got := visit.of(dns.TypeA); len(got.Answer) != 1 {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestANameThatDoesNotExistIsDeniedFromTheNextLookupOn(t *testing.T) {
	far := &farMemory{truth: truth{rcode: dns.RcodeNameError}, let: make(chan struct{})}
	l := unlisted(t, "", "198.18.3.0/24", far)
	var first lookup
	first.send(t, l, laptop, "gone.example.org.", dns.TypeA, dns.TypeHTTPS)
	first.done.Wait()
	if len(first.of(dns.TypeA).Answer) != 1 {
		t.Fatalf("A: %v", first.of(dns.TypeA))
	}
	close(far.let)
	// The memory may not keep the denial: the name gets no address again all the same.
	until(t, "the truth is not noted", func() bool {
		return l.firstVisits.table.Arrive(netip.MustParseAddr(laptop), "gone.example.org.", dns.TypeAAAA, time.Now()).Outcome == browsers.Known
	})
	var next lookup
	next.send(t, l, laptop, "gone.example.org.", dns.TypeA, dns.TypeHTTPS)
	next.done.Wait()
	if got := next.of(dns.TypeA); got.Rcode != dns.RcodeNameError {
		t.Errorf("the next lookup gets %v", got)
	}
}

func TestALookupWithoutAPartnerIsCountedOnce(t *testing.T) {
	far := &farMemory{truth: answering("www.example.org. 300 IN A 203.0.113.1"), let: make(chan struct{})}
	l := unlisted(t, "", "198.18.4.0/24", far)
	before := outcomes(l, browsers.Alone)
	var program lookup
	program.send(t, l, laptop, "www.example.org.", dns.TypeA)
	close(far.let)
	program.done.Wait()
	if got := outcomes(l, browsers.Alone) - before; got > 1 {
		t.Errorf("counted %v times", got)
	}
}

func TestAProgramOfThisMachineLearnsWhatABrowserGets(t *testing.T) {
	for name, want := range map[string]string{
		"www.example.org.": "unlisted: no list has the name, and a browser's first lookup gets an address",
		"nas.local.":       "unlisted: no list has the name, and a browser's first lookup waits for the true response (special_use)",
	} {
		far := &farMemory{truth: answering(name + " 300 IN A 203.0.113.1"), let: make(chan struct{})}
		close(far.let)
		l := unlisted(t, "", "198.18.5.0/24", far)
		r := question(name, dns.TypeA)
		r.SetEdns0(1232, false)
		r.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: explain.Option}}
		r.RecursionDesired = false
		m := ask(t, l, r, &test.ResponseWriter{RemoteIP: "127.0.0.1"})
		if _, text := explanation(m); !strings.HasPrefix(text, want) || len(m.Answer) != 1 || m.RecursionDesired {
			t.Errorf("%s: %q, %v", name, text, m)
		}
	}
}

func TestTheKeeperOfThePacketRulesLearnsWhichNamesDoNotExist(t *testing.T) {
	for number, c := range []struct {
		truth truth
		want  string
	}{
		{truth{rcode: dns.RcodeNameError}, " absent"},
		{truth{}, " -"}, // the name may have an IPv6 address
		{answering("www.example.org. 300 IN A 10.0.0.1"), " -"},
	} {
		far := &farMemory{truth: c.truth, let: make(chan struct{})}
		l := unlisted(t, "", fmt.Sprintf("198.18.%d.0/24", 7+number), far)
		_, updates, leave := l.firstVisits.table.Follow()
		var first lookup
		first.send(t, l, laptop, "www.example.org.", dns.TypeA, dns.TypeHTTPS)
		first.done.Wait()
		close(far.let)
		var line strings.Builder
		out := bufio.NewWriter(&line)
		write(out, <-updates)
		_ = out.Flush()
		if !strings.HasSuffix(line.String(), c.want+"\n") {
			t.Errorf("%v: %q, not %q", c.truth, line.String(), c.want)
		}
		leave()
	}
}

func TestTheKeeperOfThePacketRulesLearnsTheTrueAddresses(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "instant.sock")
	far := &farMemory{truth: answering("www.example.org. 300 IN A 10.0.0.1\nwww.example.org. 300 IN A 203.0.113.1"), let: make(chan struct{})}
	l := unlisted(t, "", "198.18.6.0/24 "+socket, far)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	if err := l.firstVisits.start(ctx, &running); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); running.Wait(); _ = mappings.close() })
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	early := lines(t, socket)
	var first lookup
	first.send(t, l, laptop, "www.example.org.", dns.TypeA, dns.TypeHTTPS)
	first.done.Wait()
	close(far.let)
	want := first.of(dns.TypeA).Answer[0].(*dns.A).A.String() + " 203.0.113.1"
	if got := <-early; got != want {
		t.Errorf("a keeper that was there gets %q, not %q", got, want)
	}
	if got := <-lines(t, socket); got != want {
		t.Errorf("a later keeper gets %q, not %q", got, want)
	}
	// A reload serves the same table.
	if err := mappings.serve(socket, l.firstVisits.table); err != nil {
		t.Fatal(err)
	}
}

// lines returns those that come from a socket.
func lines(t *testing.T, socket string) <-chan string {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	found := make(chan string, 9)
	go func() {
		for scanner := bufio.NewScanner(conn); scanner.Scan(); {
			found <- scanner.Text()
		}
	}()
	return found
}
