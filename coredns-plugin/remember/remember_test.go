package remember

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/caddy"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/test"

	"example.org/longhaul/coredns-plugin/remember/store"

	"github.com/miekg/dns"
)

func init() { clog.Discard() }

const (
	twoAddresses = "www.example.org. 60 IN A 203.0.113.1\nwww.example.org. 300 IN A 203.0.113.2"
	soa          = "example.org. 60 IN SOA ns.example.org. host.example.org. 1 1 1 1 60"
)

// upstream is what stands behind the plugin: its answer, and what it was asked.
type upstream struct {
	mu      sync.Mutex
	answer  string
	deny    string
	rcode   int
	fails   bool
	ad      bool
	asked   []*dns.Msg
	release chan struct{}
}

func (u *upstream) Name() string { return "upstream" }

func (u *upstream) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	u.mu.Lock()
	u.asked = append(u.asked, r)
	release := u.release
	u.mu.Unlock()
	if release != nil {
		<-release
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fails {
		return dns.RcodeServerFailure, errors.New("the link is down")
	}
	m := new(dns.Msg).SetReply(r)
	m.Rcode, m.RecursionAvailable, m.AuthenticatedData = u.rcode, true, u.ad
	m.Answer, m.Ns = parsed(u.answer), parsed(u.deny)
	if opt := r.IsEdns0(); opt != nil {
		m.SetEdns0(1232, opt.Do())
	}
	return m.Rcode, w.WriteMsg(m)
}

func (u *upstream) set(change func(u *upstream)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

func (u *upstream) queries() []*dns.Msg {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.asked
}

func parsed(text string) (records []dns.RR) {
	for line := range strings.Lines(text) {
		rr, err := dns.NewRR(line)
		if err != nil {
			panic(err)
		}
		records = append(records, rr)
	}
	return records
}

// clock is a clock that a test sets.
type clock struct{ seconds atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(c.seconds.Load(), 0) }

func (c *clock) pass(d time.Duration) { c.seconds.Add(int64(d / time.Second)) }

// bed is a plugin before an upstream, with a clock of the test's own.
type bed struct {
	*Remember
	*upstream
	*clock
	t *testing.T
}

func newBed(t *testing.T, path string) bed {
	t.Helper()
	b := bed{upstream: &upstream{answer: twoAddresses}, clock: &clock{}, t: t}
	b.clock.seconds.Store(1_800_000_000)
	b.Remember = &Remember{
		Next: b.upstream, span: 7 * 24 * time.Hour, now: b.clock.now, asking: map[string]*asking{},
		refresher: newRefresher(b.clock.now), memory: open(path, 1<<20),
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.refresher.run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		_ = b.memory.close()
	})
	return b
}

func bedOf(t *testing.T) bed { return newBed(t, filepath.Join(t.TempDir(), "names")) }

func query(name string, qtype uint16) *dns.Msg { return new(dns.Msg).SetQuestion(name, qtype) }

// get sends a query to the plugin, and returns the response, nil after an error.
func (b bed) get(r *dns.Msg) *dns.Msg {
	b.t.Helper()
	w := &kept{ResponseWriter: &test.ResponseWriter{}}
	if _, err := b.Remember.ServeDNS(b.t.Context(), w, r); err != nil {
		return nil
	}
	if w.m == nil {
		b.t.Fatal("No response")
	}
	if w.m.Id != r.Id || !w.m.Response || w.m.Question[0] != r.Question[0] {
		b.t.Errorf("Response is not to the query:\n%s", w.m)
	}
	return w.m
}

type kept struct {
	dns.ResponseWriter
	m *dns.Msg
}

func (k *kept) WriteMsg(m *dns.Msg) error { k.m = m; return nil }

// summary is what a test compares of a response: the addresses, or the kind of denial, and the TTL.
func summary(m *dns.Msg) string {
	if m == nil {
		return "error"
	}
	text := dns.RcodeToString[m.Rcode]
	for _, rr := range m.Answer {
		if a, ok := rr.(*dns.A); ok {
			text += " " + a.A.String()
		}
	}
	for _, rr := range append(m.Answer, m.Ns...) {
		return fmt.Sprint(text, " ", rr.Header().Ttl)
	}
	return text
}

func (b bed) expect(what, want string, queries int) {
	b.t.Helper()
	if got := summary(b.get(query("www.example.org.", dns.TypeA))); got != want {
		b.t.Errorf("%s: response is %q, want %q", what, got, want)
	}
	b.expectQueries(what, queries)
}

func (b bed) expectQueries(what string, queries int) {
	b.t.Helper()
	if got := len(b.queries()); got != queries {
		b.t.Errorf("%s: %d queries were sent on, want %d", what, got, queries)
	}
}

func (b bed) await(what string, condition func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("Did not happen: %s", what)
		}
	}
}

func (b bed) awaitRefresh(queries int) {
	b.t.Helper()
	b.await("the refresh is done", func() bool {
		b.refresher.mu.Lock()
		defer b.refresher.mu.Unlock()
		for _, until := range b.refresher.under {
			if until.IsZero() {
				return false
			}
		}
		return len(b.queries()) == queries
	})
}

func TestAnAnswerIsFreshForItsTTLThenServedStaleAndRefreshed(t *testing.T) {
	b := bedOf(t)
	b.expect("new", "NOERROR 203.0.113.1 203.0.113.2 60", 1)
	b.pass(59 * time.Second)
	b.expect("fresh", "NOERROR 203.0.113.1 203.0.113.2 1", 1)
	b.pass(time.Second)
	b.upstream.set(func(u *upstream) { u.answer = "www.example.org. 60 IN A 203.0.113.9" })
	if got := summary(b.get(query("www.example.org.", dns.TypeA))); got != "NOERROR 203.0.113.1 203.0.113.2 30" {
		t.Errorf("Stale response is %q", got)
	}
	b.awaitRefresh(2)
	b.expect("refreshed", "NOERROR 203.0.113.9 60", 2)
}

func TestAnAnswerIsServedStaleForAWeekAndNotLonger(t *testing.T) {
	b := bedOf(t)
	b.get(query("www.example.org.", dns.TypeA))
	b.upstream.set(func(u *upstream) { u.fails = true })
	b.pass(7*24*time.Hour - time.Second)
	if got := summary(b.get(query("www.example.org.", dns.TypeA))); got != "NOERROR 203.0.113.1 203.0.113.2 30" {
		t.Errorf("Response is %q", got)
	}
	b.awaitRefresh(2)
	b.pass(time.Second)
	b.expect("after a week", "error", 3)
}

func TestAFailedRefreshLeavesTheAnswerAndIsNotRepeatedFor30Seconds(t *testing.T) {
	for name, fail := range map[string]func(u *upstream){
		"link down": func(u *upstream) { u.fails = true },
		"SERVFAIL":  func(u *upstream) { u.rcode, u.answer = dns.RcodeServerFailure, "" },
		"REFUSED":   func(u *upstream) { u.rcode, u.answer = dns.RcodeRefused, "" },
	} {
		t.Run(name, func(t *testing.T) {
			b := bedOf(t)
			b.get(query("www.example.org.", dns.TypeA))
			b.pass(time.Hour)
			b.upstream.set(fail)
			for range 3 {
				b.get(query("www.example.org.", dns.TypeA))
				b.awaitRefresh(2)
			}
			b.pass(29 * time.Second)
			b.expect("29 s later", "NOERROR 203.0.113.1 203.0.113.2 30", 2)
			b.pass(time.Second)
			b.upstream.set(func(u *upstream) { u.fails, u.rcode, u.answer = false, 0, "www.example.org. 60 IN A 203.0.113.9" })
			b.get(query("www.example.org.", dns.TypeA))
			b.awaitRefresh(3)
			b.expect("up again", "NOERROR 203.0.113.9 60", 3)
		})
	}
}

func TestADenialEndsWithItsTTL(t *testing.T) {
	for name, c := range map[string]struct {
		rcode        int
		answer, deny string
	}{
		"NXDOMAIN":          {dns.RcodeNameError, "", soa},
		"NODATA":            {dns.RcodeSuccess, "", soa},
		"NODATA at a CNAME": {dns.RcodeSuccess, "www.example.org. 90 IN CNAME w.example.org.", soa},
		"the SOA's minimum": {dns.RcodeNameError, "", strings.Replace(soa, " 60 IN", " 300 IN", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			b := bedOf(t)
			b.upstream.set(func(u *upstream) { u.rcode, u.answer, u.deny = c.rcode, c.answer, c.deny })
			want := dns.RcodeToString[c.rcode]
			b.expect("new", want+" 60", 1)
			b.pass(59 * time.Second)
			b.expect("fresh", want+" 1", 1)
			b.pass(time.Second)
			b.expect("over", want+" 60", 2)
			b.pass(time.Minute)
			b.upstream.set(func(u *upstream) { u.fails = true })
			b.expect("over, link down", "error", 3)
		})
	}
}

func TestADenialTakesThePlaceOfAStaleAnswer(t *testing.T) {
	for name, deny := range map[string]string{"with a TTL": soa, "without": ""} {
		t.Run(name, func(t *testing.T) {
			b := bedOf(t)
			b.get(query("www.example.org.", dns.TypeA))
			b.pass(time.Hour)
			b.upstream.set(func(u *upstream) { u.rcode, u.answer, u.deny = dns.RcodeNameError, "", deny })
			b.get(query("www.example.org.", dns.TypeA))
			b.awaitRefresh(2)
			if got := b.get(query("www.example.org.", dns.TypeA)); got.Rcode != dns.RcodeNameError {
				t.Errorf("Response is\n%s", got)
			}
		})
	}
}

func TestFailuresAndHalfAnswersAreNotKept(t *testing.T) {
	for name, set := range map[string]func(u *upstream){
		"SERVFAIL":           func(u *upstream) { u.rcode, u.answer = dns.RcodeServerFailure, "" },
		"REFUSED":            func(u *upstream) { u.rcode, u.answer = dns.RcodeRefused, "" },
		"NXDOMAIN, no SOA":   func(u *upstream) { u.rcode, u.answer = dns.RcodeNameError, "" },
		"empty":              func(u *upstream) { u.answer = "" },
		"a CNAME alone":      func(u *upstream) { u.answer = "www.example.org. 60 IN CNAME w.example.org." },
		"CNAMEs in a circle": func(u *upstream) { u.answer = "www.example.org. 60 IN CNAME www.example.org." },
		"another name":       func(u *upstream) { u.answer = "w.example.org. 60 IN A 203.0.113.1" },
		"a denial of TTL 0":  func(u *upstream) { u.answer, u.deny = "", strings.Replace(soa, " 60 IN", " 0 IN", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := bedOf(t)
			b.upstream.set(set)
			for range 2 {
				b.get(query("www.example.org.", dns.TypeA))
			}
			b.expectQueries("twice", 2)
		})
	}
}

func TestDNSSECIsThatOfTheStockCache(t *testing.T) {
	b := bedOf(t)
	b.upstream.set(func(u *upstream) { u.ad = true })
	plain, ad, do, cd := query("www.example.org.", dns.TypeA), query("www.example.org.", dns.TypeA), query("www.example.org.", dns.TypeA), query("www.example.org.", dns.TypeA)
	ad.AuthenticatedData, cd.CheckingDisabled = true, true
	do.SetEdns0(1232, true)
	for i, c := range []struct {
		r       *dns.Msg
		ad      bool
		queries int
	}{{plain, false, 1}, {ad, true, 1}, {do, true, 2}, {cd, false, 3}, {plain, false, 3}, {do, true, 3}, {cd, false, 3}} {
		if got := b.get(c.r); got.AuthenticatedData != c.ad {
			t.Errorf("Query %d: AD is %v", i, got.AuthenticatedData)
		}
		b.expectQueries(fmt.Sprint("query ", i), c.queries)
	}
	for _, r := range b.queries() {
		if !r.AuthenticatedData {
			t.Error("A query was sent on without AD")
		}
	}
	// A refresh is the query that it replaces.
	b.pass(time.Hour)
	b.get(do)
	b.awaitRefresh(4)
	if last := b.queries()[3]; !last.IsEdns0().Do() || last.CheckingDisabled {
		t.Errorf("Refresh is\n%s", last)
	}
	b.get(cd)
	b.awaitRefresh(5)
	if last := b.queries()[4]; last.IsEdns0().Do() || !last.CheckingDisabled {
		t.Errorf("Refresh is\n%s", last)
	}
}

func TestASignedAnswerIsNotServedBeyondItsSignature(t *testing.T) {
	b := bedOf(t)
	end := b.clock.now().Add(2 * time.Hour).UTC().Format("20060102150405")
	b.upstream.set(func(u *upstream) {
		u.answer = "www.example.org. 60 IN A 203.0.113.1\nwww.example.org. 60 IN RRSIG A 8 3 60 " + end + " 20200101000000 1 example.org. AAAA"
	})
	do := query("www.example.org.", dns.TypeA)
	do.SetEdns0(1232, true)
	b.get(do)
	b.pass(2*time.Hour - time.Second)
	b.upstream.set(func(u *upstream) { u.fails = true })
	if got := b.get(do); got == nil || len(got.Answer) != 2 {
		t.Errorf("Response is\n%s", got)
	}
	b.awaitRefresh(2)
	b.pass(time.Second)
	if got := b.get(do); got != nil {
		t.Errorf("Response is\n%s", got)
	}
}

func TestClientsWithOneQuestionWaitForOneQuery(t *testing.T) {
	b := bedOf(t)
	release := make(chan struct{})
	b.upstream.set(func(u *upstream) { u.release = release })
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			if got := summary(b.get(query("www.example.org.", dns.TypeA))); got != "NOERROR 203.0.113.1 203.0.113.2 60" {
				t.Errorf("Response is %q", got)
			}
		})
	}
	b.await("the query is on its way", func() bool { return len(b.queries()) > 0 })
	// Another question does not wait.
	clients.Go(func() { b.get(query("www.example.org.", dns.TypeAAAA)) })
	b.await("the other query is on its way", func() bool { return len(b.queries()) > 1 })
	close(release)
	clients.Wait()
	b.expectQueries("after all", 2)
}

func TestAStaleNameIsRefreshedOnceAtATime(t *testing.T) {
	b := bedOf(t)
	b.get(query("www.example.org.", dns.TypeA))
	b.pass(time.Hour)
	release := make(chan struct{})
	b.upstream.set(func(u *upstream) { u.release = release })
	for range 8 {
		b.get(query("WWW.example.org.", dns.TypeA))
	}
	b.await("the refresh is on its way", func() bool { return len(b.queries()) == 2 })
	time.Sleep(2 * gather)
	close(release)
	b.awaitRefresh(2)
}

func TestARestartLosesNoName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	before := newBed(t, path)
	const names = 500
	for i := range names {
		name := fmt.Sprintf("host%d.example.org.", i)
		before.upstream.set(func(u *upstream) { u.answer = name + " 60 IN A 203.0.113.1" })
		before.get(query(name, dns.TypeA))
	}
	if err := before.memory.close(); err != nil {
		t.Fatal(err)
	}
	after := newBed(t, path)
	after.pass(8 * time.Hour)
	after.upstream.set(func(u *upstream) { u.fails = true })
	for i := range names {
		if got := after.get(query(fmt.Sprintf("host%d.example.org.", i), dns.TypeA)); got == nil {
			t.Fatalf("Name %d was lost", i)
		}
	}
}

func TestABadFileIsAnEmptyMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	if err := os.WriteFile(path, []byte("longhaul names 1\nand no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, path)
	b.expect("new", "NOERROR 203.0.113.1 203.0.113.2 60", 1)
	if err := b.memory.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(path, 1<<20); err != nil {
		t.Errorf("The file was not written anew: %v", err)
	}
}

func TestAClockThatWasSetBackMakesAnswersStaleAndEndsDenials(t *testing.T) {
	b := bedOf(t)
	b.get(query("www.example.org.", dns.TypeA))
	b.upstream.set(func(u *upstream) { u.answer, u.deny = "", soa })
	b.get(query("www.example.org.", dns.TypeAAAA))
	b.upstream.set(func(u *upstream) { u.fails = true })
	b.pass(-100 * 24 * time.Hour)
	if got := summary(b.get(query("www.example.org.", dns.TypeA))); got != "NOERROR 203.0.113.1 203.0.113.2 30" {
		t.Errorf("Response is %q", got)
	}
	if got := b.get(query("www.example.org.", dns.TypeAAAA)); got != nil {
		t.Errorf("Response is\n%s", got)
	}
}

func TestOtherQueriesPass(t *testing.T) {
	b := bedOf(t)
	chaos := query("www.example.org.", dns.TypeTXT)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	for i, r := range []*dns.Msg{chaos, query("www.example.org.", dns.TypeANY)} {
		for j := range 2 {
			b.get(r)
			b.expectQueries("passed", 2*i+j+1)
		}
	}
}

func TestParse(t *testing.T) {
	for body, want := range map[string]options{
		"remember /kept/names":                                {"/kept/names", defaultSpan, defaultSize, ""},
		"remember /kept/names {\nfor 1h\nsize 2097152\n}":     {"/kept/names", time.Hour, 2 << 20, ""},
		"remember /kept/names {\npushed /run/s\n}":            {"/kept/names", defaultSpan, defaultSize, "/run/s"},
		"remember /kept/names {\npushed\n}":                   {},
		"remember":                                            {},
		"remember a b":                                        {},
		"remember /kept/names {\nfor 0s\n}":                   {},
		"remember /kept/names {\nfor 7d\n}":                   {},
		"remember /kept/names {\nsize 1\n}":                   {},
		"remember /kept/names {\nsize\n}":                     {},
		"remember /kept/names {\nweekly\n}":                   {},
		"remember /kept/names\nremember /kept/others":         {},
		"remember /kept/names {\nfor 1h 2h\n}":                {},
		"remember /kept/names {\nsize 9223372036854775807\n}": {},
	} {
		got, err := parse(caddy.NewTestController("dns", body))
		if (err != nil) != (want == options{}) || err == nil && got != want {
			t.Errorf("%q: got %+v, %v", body, got, err)
		}
	}
}
