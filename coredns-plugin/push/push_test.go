package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/test"

	"example.org/longhaul/coredns-plugin/push/take"
	"example.org/longhaul/coredns-plugin/push/wire"

	"github.com/miekg/dns"
)

func init() { clog.Discard() }

// upstream has an address for each name, an HTTPS denial, and what a hostile resolver adds.
type upstream struct {
	mu    sync.Mutex
	asked []string
	fails map[string]bool
	add   []dns.RR
}

func (u *upstream) Name() string { return "upstream" }

func (u *upstream) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	question := r.Question[0]
	u.asked = append(u.asked, question.Name+" "+dns.TypeToString[question.Qtype])
	if opt := r.IsEdns0(); opt != nil && len(opt.Option) > 0 {
		u.asked = append(u.asked, "an option leaves the pair")
	}
	if u.fails[question.Name] {
		return dns.RcodeServerFailure, errors.New("no response")
	}
	m := new(dns.Msg).SetReply(r)
	switch {
	case strings.HasPrefix(question.Name, "absent."):
		m.Rcode = dns.RcodeNameError
	case question.Qtype == dns.TypeA:
		m.Answer = append(m.Answer, record(question.Name+" 60 IN A 203.0.113.1"))
	default:
		m.Ns = append(m.Ns, record("test. 60 IN SOA ns.test. host.test. 1 1 1 1 60"))
	}
	m.Answer, m.Extra = append(m.Answer, u.add...), append(m.Extra, u.add...)
	return m.Rcode, w.WriteMsg(m)
}

func (u *upstream) reset() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	asked := u.asked
	u.asked = nil
	return asked
}

func record(text string) dns.RR {
	rr, err := dns.NewRR(text)
	if err != nil {
		panic(err)
	}
	return rr
}

// ground is a plugin with a socket for streams.
type ground struct {
	*Push
	*upstream
	t      *testing.T
	socket string
	clock  atomic.Int64
}

func newGround(t *testing.T, file string) *ground {
	t.Helper()
	g := &ground{upstream: &upstream{}, t: t}
	g.clock.Store(1_800_000_000)
	hub := newHub("", file, 1<<20, func() time.Time { return time.Unix(g.clock.Load(), 0) })
	hub.load(1 << 20)
	g.Push = &Push{Next: g.upstream, hub: hub}
	hub.handler.Store(g.Push)
	g.socket = filepath.Join(t.TempDir(), "s")
	listener, err := listen(g.socket)
	if err != nil {
		t.Fatal(err)
	}
	hub.server = serve(hub, listener)
	t.Cleanup(hub.server.close)
	return g
}

// transport returns one to the ground's socket.
func (g *ground) transport() *http.Transport {
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", g.socket)
	}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return transport
}

func (g *ground) pass(d time.Duration) { g.clock.Add(int64(d / time.Second)) }

// remote is a taker, and what it was sent.
type taker struct {
	*take.Taker
	g    *ground
	stop context.CancelFunc

	mu    sync.Mutex
	got   []*dns.Msg
	state take.State
}

func (g *ground) remote(id byte) *taker {
	g.t.Helper()
	r := &taker{g: g}
	ctx, stop := context.WithCancel(g.t.Context())
	r.Taker = take.New(g.socket, wire.ID{id}, 7*24*time.Hour, func(m *dns.Msg) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, m)
	}, func(state take.State) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.state = state
	})
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	r.stop = func() { stop(); running.Wait() }
	g.t.Cleanup(r.stop)
	await(g.t, "the stream is open", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.state == take.Open
	})
	return r
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("Did not happen: %s", what)
		}
	}
}

// ask sends a query of a client of the remote.
func (r *taker) ask(client string, refresh bool, names ...string) {
	r.g.t.Helper()
	for _, name := range names {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeHTTPS} {
			query := new(dns.Msg).SetQuestion(name, qtype)
			r.Mark(query, net.ParseIP(client), refresh)
			r.g.query(query)
		}
	}
}

func (g *ground) query(query *dns.Msg) *dns.Msg {
	g.t.Helper()
	rec := dnstest.NewRecorder(&test.ResponseWriter{TCP: true})
	if _, err := g.Push.ServeDNS(g.t.Context(), rec, query); err != nil {
		return nil
	}
	return rec.Msg
}

// sent returns what the remote was sent since the last call, once it is count responses.
func (r *taker) sent(count int) string {
	r.g.t.Helper()
	await(r.g.t, fmt.Sprintf("%d responses come", count), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.got) >= count
	})
	await(r.g.t, "nothing is under way", func() bool {
		r.g.hub.mu.Lock()
		defer r.g.hub.mu.Unlock()
		for _, s := range r.g.hub.sessions {
			if len(s.under) > 0 || !s.unsent.empty() {
				return false
			}
		}
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	var text []string
	for _, m := range r.got {
		text = append(text, strings.TrimSuffix(m.Question[0].Name, ".test.")+" "+dns.TypeToString[m.Question[0].Qtype])
	}
	r.got = nil
	return sorted(text)
}

func sorted(text []string) string {
	for i := range text {
		for j := range i {
			if text[i] < text[j] {
				text[i], text[j] = text[j], text[i]
			}
		}
	}
	return strings.Join(text, ", ")
}

func (r *taker) expect(what, want string) {
	r.g.t.Helper()
	count := 0
	if want != "" {
		count = strings.Count(want, ",") + 1
	}
	if got := r.sent(count); got != want {
		r.g.t.Errorf("%s: sent %q, want %q", what, got, want)
	}
}

// learned is a ground that two clients taught a page.
func learned(t *testing.T) (*ground, *taker) {
	g := newGround(t, filepath.Join(t.TempDir(), "followers"))
	r := g.remote(1)
	r.ask("192.0.2.1", false, "page.test.", "img.test.", "cdn.test.")
	g.pass(time.Minute)
	r.ask("192.0.2.2", false, "page.test.", "img.test.", "cdn.test.")
	r.expect("while it learns", "")
	return g, r
}

const followersOfPage = "cdn A, cdn HTTPS, img A, img HTTPS"

func TestANewRemoteIsSentWhatFollows(t *testing.T) {
	g, _ := learned(t)
	other := g.remote(2)
	other.ask("192.0.2.9", false, "page.test.")
	other.expect("the first visit", followersOfPage)
	g.pass(time.Minute)
	other.ask("192.0.2.9", true, "page.test.")
	other.expect("the second visit", "cdn HTTPS, img HTTPS")
	for _, asked := range g.reset() {
		if strings.HasPrefix(asked, "an option") {
			t.Error(asked)
		}
	}
}

func TestNothingIsSentThatARemoteHasOrAsks(t *testing.T) {
	g, r := learned(t)
	g.pass(20 * time.Second)
	r.ask("192.0.2.1", true, "page.test.")
	r.expect("it has all", "")
	other := g.remote(2)
	other.ask("192.0.2.9", false, "img.test.", "page.test.")
	other.expect("it asked for one", "cdn A, cdn HTTPS")
}

func TestARemoteWithTheSameIDHasWhatItHadBefore(t *testing.T) {
	g, r := learned(t)
	r.stop()
	again := g.remote(1)
	again.ask("192.0.2.9", false, "page.test.")
	again.expect("the same memory", "")
	g.hub.save()
	g.pass(time.Minute)
	restarted := newGround(t, g.hub.file)
	restarted.clock.Store(g.clock.Load())
	same := restarted.remote(1)
	same.ask("192.0.2.9", false, "page.test.")
	same.expect("after a restart of the ground", "cdn HTTPS, img HTTPS")
	other := restarted.remote(3)
	other.ask("192.0.2.9", false, "page.test.")
	other.expect("another one", followersOfPage)
}

func TestAUsedResponseIsALookup(t *testing.T) {
	g, _ := learned(t)
	for id := range byte(6) {
		other := g.remote(10 + id)
		g.pass(time.Minute)
		other.ask("192.0.2.9", false, "page.test.")
		other.expect("a further remote", followersOfPage)
		asked := g.hub.asks("img.test.")
		other.Use(net.ParseIP("192.0.2.9"), dns.Question{Name: "IMG.test.", Qtype: dns.TypeA})
		await(t, "the use is counted", func() bool { return g.hub.asks("img.test.") > asked })
	}
	last := g.remote(30)
	last.ask("192.0.2.9", false, "page.test.")
	last.expect("what was used stays", "img A, img HTTPS")
}

// asks returns how often the table saw a name asked.
func (h *hub) asks(name string) float32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table.Asks(name)
}

func TestAPageIsFollowedByTheHostsThatItNames(t *testing.T) {
	g := newGround(t, filepath.Join(t.TempDir(), "followers"))
	loading, other := g.remote(1), g.remote(2)
	loading.ask("192.0.2.1", false, "page.test.")
	g.post("page.test,Img.test,192.0.2.7,localhost,not a name..,,")
	loading.expect("the remote that loads the page", "img A, img HTTPS")
	other.expect("another remote", "")
	other.ask("192.0.2.1", false, "page.test.")
	other.expect("the other remote, later", "img A, img HTTPS")
	for _, hosts := range []string{"", "page.test", "192.0.2.1,img.test", strings.Repeat("x,", 1<<15)} {
		g.post(hosts)
	}
}

func (g *ground) post(hosts string) {
	g.t.Helper()
	transport := g.transport()
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, "http://ground"+pagePath, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header.Set(hostsField, hosts)
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusNoContent {
		g.t.Errorf("Status %d", response.StatusCode)
	}
}

func TestPopularNamesAreSentWhileNothingIsAsked(t *testing.T) {
	g, r := learned(t)
	r.ask("192.0.2.3", false, "page.test.")
	r.ask("192.0.2.3", false, "mine.test.")
	g.hub.rate.Store(1000)
	other := g.remote(2)
	other.ask("192.0.2.9", false, "unrelated.test.")
	g.hub.sendAhead()
	other.expect("while it asks", "")
	g.pass(quiet + time.Second)
	g.hub.sendAhead()
	other.expect("quiet", "page A, page HTTPS")
	g.pass(2 * time.Minute)
	g.hub.sendAhead()
	other.expect("once, though the denial has ended", "")
	other.Use(net.ParseIP("192.0.2.9"), dns.Question{Name: "page.test.", Qtype: dns.TypeA})
	other.expect("what follows a name that was sent", followersOfPage)
	third := g.remote(3)
	g.hub.rate.Store(0)
	g.pass(time.Minute)
	g.hub.sendAhead()
	third.expect("switched off", "")
}

func TestFailuresAndAbsentNamesAreNotSent(t *testing.T) {
	g := newGround(t, filepath.Join(t.TempDir(), "followers"))
	r := g.remote(1)
	for i := range 2 {
		g.pass(time.Minute)
		r.ask(fmt.Sprintf("192.0.2.%d", i), false, "page.test.", "absent.test.", "broken.test.", "img.test.")
	}
	g.upstream.mu.Lock()
	g.upstream.fails = map[string]bool{"broken.test.": true}
	g.upstream.mu.Unlock()
	other := g.remote(2)
	other.ask("192.0.2.9", false, "page.test.")
	other.expect("page", "img A, img HTTPS")
}

func TestAResponseIsSentWithoutWhatAHostileResolverAdds(t *testing.T) {
	g, _ := learned(t)
	g.upstream.mu.Lock()
	g.upstream.add = []dns.RR{record("bank.test. 60 IN A 203.0.113.66"), record("page.test. 60 IN NS evil.test.")}
	g.upstream.mu.Unlock()
	other := g.remote(2)
	other.ask("192.0.2.9", false, "page.test.")
	await(t, "responses come", func() bool {
		other.mu.Lock()
		defer other.mu.Unlock()
		return len(other.got) >= 2
	})
	other.mu.Lock()
	defer other.mu.Unlock()
	for _, m := range other.got {
		if strings.Contains(m.String(), "bank.") || strings.Contains(m.String(), "evil.") {
			t.Errorf("Sent:\n%s", m)
		}
	}
}

func TestAQueryWithAnUnknownMarkIsAQuery(t *testing.T) {
	g, _ := learned(t)
	g.reset()
	query := new(dns.Msg).SetQuestion("page.test.", dns.TypeA)
	wire.Mark{Token: wire.Token{1, 2, 3}, Client: 9}.Put(query)
	if m := g.query(query); m == nil || len(m.Answer) != 1 {
		t.Errorf("Response is %v", m)
	}
	if got := strings.Join(g.reset(), ", "); got != "page.test. A" {
		t.Errorf("Asked %q", got)
	}
}

func TestQueriesWithDOTeachNothing(t *testing.T) {
	g := newGround(t, filepath.Join(t.TempDir(), "followers"))
	r := g.remote(1)
	for i := range 3 {
		g.pass(time.Minute)
		for _, name := range []string{"page.test.", "img.test."} {
			query := new(dns.Msg).SetQuestion(name, dns.TypeA)
			query.SetEdns0(1232, true)
			r.Mark(query, net.IPv4(192, 0, 2, byte(i)), false)
			g.query(query)
		}
	}
	if _, names, _ := g.hub.table.Size(); names != 0 {
		t.Errorf("%d names are known", names)
	}
}

func TestASlowRemoteIsSentNoMoreThanItsBound(t *testing.T) {
	u := unsent{wake: make(chan struct{}, 1)}
	frame := make([]byte, 60<<10)
	for i := range 4 {
		if !u.add(frame) {
			t.Errorf("Frame %d is not taken", i)
		}
	}
	if u.add(frame) {
		t.Error("The fifth frame is taken")
	}
	if taken, ok := u.take(t.Context()); !ok || len(taken) != 4*len(frame) {
		t.Errorf("%d bytes", len(taken))
	}
	if !u.add(frame) {
		t.Error("There is no room afterwards")
	}
}

func TestRemotesAreBounded(t *testing.T) {
	var r remotes
	now := time.Unix(1_800_000_000, 0)
	first := r.of(wire.ID{1}, now)
	for i := range 2 * mostHad {
		r.set(first, wire.Question{Name: fmt.Sprint(i), Type: 1}, now.Add(time.Hour), now)
		if len(r.byNumber[first].had) > mostHad || r.hadOfAll != len(r.byNumber[first].had) {
			t.Fatalf("%d responses, %d of all", len(r.byNumber[first].had), r.hadOfAll)
		}
	}
	if question := (wire.Question{Name: fmt.Sprint(2*mostHad - 1), Type: 1}); !r.has(first, question, now) || r.has(first, question, now.Add(time.Hour)) {
		t.Error("The last response is not known for an hour")
	}
	r.set(first, wire.Question{Name: "gone.", Type: 1}, now, now)
	for i := range mostRemotes + 10 {
		r.of(wire.ID{2, byte(i), byte(i >> 8)}, now.Add(time.Second))
	}
	if len(r.byNumber) != mostRemotes || r.hadOfAll != 0 {
		t.Errorf("%d remotes, %d responses", len(r.byNumber), r.hadOfAll)
	}
}

func TestAFileThatCannotBeUsedIsAnEmptyTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "followers")
	for _, text := range []string{"", "longhaul followers 9\nxyz", magic, magic + "xyz"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		h := newHub("", path, 1<<20, time.Now)
		h.load(1 << 20)
		if _, names, _ := h.table.Size(); names != 0 || len(h.remotes.byNumber) != 0 {
			t.Errorf("%q: %d names", text, names)
		}
	}
}

func TestAStreamOfAnotherReleaseEnds(t *testing.T) {
	g := newGround(t, filepath.Join(t.TempDir(), "followers"))
	transport := g.transport()
	defer transport.CloseIdleConnections()
	hello := wire.AppendHello(nil, wire.Hello{})
	hello[2] = 9
	for _, c := range []struct {
		body   []byte
		status int
	}{{hello, http.StatusOK}, {[]byte{1, 'x'}, http.StatusBadRequest}, {[]byte{3, 'h', 1, 1}, http.StatusBadRequest}, {nil, http.StatusBadRequest}} {
		response, err := (&http.Client{Transport: transport}).Post("http://ground"+wire.Path, "", bytes.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%q: status %d", c.body, response.StatusCode)
		}
	}
	if len(g.hub.sessions) != 0 {
		t.Errorf("%d streams are open", len(g.hub.sessions))
	}
}

func TestParse(t *testing.T) {
	for body, want := range map[string]options{
		"push /run/s /kept/f":                             {"/run/s", "/kept/f", defaultSize, 0},
		"push /run/s /kept/f {\nsize 1048576\nahead 9\n}": {"/run/s", "/kept/f", 1 << 20, 9},
		"push":                      {},
		"push a":                    {},
		"push a b c":                {},
		"push a b {\nsize 1\n}":     {},
		"push a b {\nahead -1\n}":   {},
		"push a b {\nahead fast\n}": {},
		"push a b {\nbehind 1\n}":   {},
		"push a b {\nsize\n}":       {},
		"push a b\npush a b":        {},
	} {
		got, err := parse(caddy.NewTestController("dns", body))
		if (err != nil) != (want == options{}) || err == nil && got != want {
			t.Errorf("%q: got %+v, %v", body, got, err)
		}
	}
}
