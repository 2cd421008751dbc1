package longhaul_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"

	_ "example.org/longhaul/coredns-plugin/slim"

	"github.com/miekg/dns"
)

func init() { caddy.Quiet, dnsserver.Quiet = true, true }

// freePort is a port on which nothing listens on loopback, neither UDP nor TCP. It is not in the range
// from which the kernel picks ports, for queries and other sockets. So no other socket gets it before the test listens on it.
func freePort(t testing.TB) int {
	t.Helper()
	var ephemeral int
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err != nil {
		t.Fatal(err)
	} else if _, err := fmt.Sscan(string(text), &ephemeral); err != nil {
		t.Fatal(err)
	}
	const lowest = 10_000
	for range 50 {
		port := lowest + rand.IntN(ephemeral-lowest)
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		udp, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		tcp, err := net.Listen("tcp", addr)
		_ = udp.Close()
		if err == nil {
			_ = tcp.Close()
			return port
		}
	}
	t.Fatal("found no free port")
	return 0
}

// server is a CoreDNS with the slim set of plugins, in this process.
type server struct {
	t        testing.TB
	addr     string
	instance *caddy.Instance
}

// start runs a server whose only block, for the root zone, holds body.
func start(t testing.TB, body string) *server {
	t.Helper()
	s := &server{t: t}
	var instance *caddy.Instance
	for attempt := 1; instance == nil; attempt++ {
		s.addr = fmt.Sprintf("127.0.0.1:%d", freePort(t))
		var err error
		if instance, err = caddy.Start(s.corefile(body)); err != nil && (attempt == 5 || !errors.Is(err, syscall.EADDRINUSE)) {
			t.Fatal(err)
		}
	}
	s.instance = instance
	s.await()
	t.Cleanup(s.stop)
	return s
}

// await returns when the server reads queries. One that is stopped before it does goes on serving beside its successor. A
// question of another class is refused before it reaches a plugin.
func (s *server) await() {
	r := new(dns.Msg).SetQuestion(".", dns.TypeTXT)
	r.Question[0].Qclass = dns.ClassCHAOS
	query(s.t, s.addr, r)
}

func (s *server) corefile(body string) caddy.Input {
	_, port, _ := net.SplitHostPort(s.addr)
	return caddy.CaddyfileInput{Filepath: "Corefile", ServerTypeName: "dns",
		Contents: fmt.Appendf(nil, ".:%s {\nbind 127.0.0.1\n%s\n}\n", port, body)}
}

// reload puts another Corefile into effect, as SIGUSR1 does.
func (s *server) reload(body string) error {
	instance, err := s.instance.Restart(s.corefile(body))
	if err == nil {
		s.instance = instance
		s.await()
	}
	return err
}

func (s *server) stop() {
	if err := s.instance.Stop(); err != nil {
		s.t.Error(err)
	}
	for _, err := range s.instance.ShutdownCallbacks() {
		s.t.Error(err)
	}
}

// query asks the server at addr.
func query(t testing.TB, addr string, r *dns.Msg) *dns.Msg {
	t.Helper()
	client := dns.Client{Timeout: 20 * time.Second, UDPSize: dns.MaxMsgSize}
	m, _, err := client.Exchange(r, addr)
	if err != nil {
		t.Fatalf("Query for %s %s at %s: %v", r.Question[0].Name, dns.TypeToString[r.Question[0].Qtype], addr, err)
	}
	return m
}

func ask(t testing.TB, addr, name string, qtype uint16) *dns.Msg {
	t.Helper()
	return query(t, addr, new(dns.Msg).SetQuestion(name, qtype))
}

// records are the answers of m, one a line.
func records(m *dns.Msg) string {
	lines := make([]string, len(m.Answer))
	for i, rr := range m.Answer {
		lines[i] = strings.Join(strings.Fields(rr.String()), " ")
	}
	return strings.Join(lines, "\n")
}

// addresses are the A records of m, in order.
func addresses(m *dns.Msg) (found []string) {
	for _, rr := range m.Answer {
		if a, ok := rr.(*dns.A); ok {
			found = append(found, a.A.String())
		}
	}
	return found
}

func file(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("Did not happen: %s", what)
		}
	}
}

const proxy = "198.51.100.12"

func TestLoadbalanceShufflesOnlyWhatStandsBehindTheProxy(t *testing.T) {
	o := startOrigin(t, `
		www.example.org. 300 IN A 203.0.113.1
		www.example.org. 300 IN A 203.0.113.2
		www.example.org. 300 IN A 203.0.113.3`)
	s := start(t, "longhaul {\nproxy "+proxy+"\nmatch example.org\n}\nloadbalance\ncache\nforward . "+o.addr)
	second := map[string]bool{}
	for range 60 {
		got := addresses(ask(t, s.addr, "www.example.org.", dns.TypeA))
		if len(got) != 4 || got[0] != proxy {
			t.Fatalf("Answer is %v", got)
		}
		second[got[1]] = true
	}
	if len(second) < 2 {
		t.Error("The origin's addresses were not shuffled")
	}
}

func TestCacheHitsAreSteeredLikeMissesAndTheCacheHoldsTheTruth(t *testing.T) {
	o := startOrigin(t, "www.example.org. 200 IN A 203.0.113.1")
	list := file(t, "allow.txt", "example.org\n")
	s := start(t, "longhaul "+list+" {\nproxy "+proxy+"\nreload 10ms\n}\ncache\nforward . "+o.addr)
	miss := records(ask(t, s.addr, "www.example.org.", dns.TypeA))
	hit := records(ask(t, s.addr, "www.example.org.", dns.TypeA))
	want := "www.example.org. 200 IN A " + proxy + "\nwww.example.org. 200 IN A 203.0.113.1"
	// A few seconds may have passed since.
	if aged := regexp.MustCompile(` 19\d IN `); miss != want || aged.ReplaceAllString(hit, " 200 IN ") != want {
		t.Errorf("First answer is\n%s\nthe one from the cache\n%s", miss, hit)
	}
	if n := o.queries(dns.TypeA); n != 1 {
		t.Errorf("The origin was asked %d times", n)
	}
	if err := os.WriteFile(list, []byte("other.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the name is answered truthfully from the same cache", func() bool {
		got := addresses(ask(t, s.addr, "www.example.org.", dns.TypeA))
		return len(got) == 1 && got[0] == "203.0.113.1"
	})
	if n := o.queries(dns.TypeA); n != 1 {
		t.Errorf("The origin was asked %d times", n)
	}
}

func TestACacheOfAnotherServerKeepsOurAnswers(t *testing.T) {
	o := startOrigin(t, `
		www.example.org. 300 IN A 203.0.113.1
		www.example.org. 300 IN AAAA 2001:db8:1::1
		www.example.org. 300 IN HTTPS 1 . alpn=h3 ipv4hint=203.0.113.1`)
	s := start(t, "longhaul {\nproxy "+proxy+"\nmatch example.org\n}\nforward . "+o.addr)
	downstream := start(t, "cache\nforward . "+s.addr)
	for range 3 {
		if got := addresses(ask(t, downstream.addr, "www.example.org.", dns.TypeA)); len(got) != 2 || got[0] != proxy {
			t.Errorf("A gets %v", got)
		}
		for _, qtype := range []uint16{dns.TypeAAAA, dns.TypeHTTPS} {
			if m := ask(t, downstream.addr, "www.example.org.", qtype); len(m.Answer) != 0 || len(m.Ns) != 1 {
				t.Errorf("%s gets %s", dns.TypeToString[qtype], m)
			}
		}
	}
	// One query of each type, and the lookups of A that decide over the other two.
	if a, aaaa, https := o.queries(dns.TypeA), o.queries(dns.TypeAAAA), o.queries(dns.TypeHTTPS); a != 3 || aaaa != 1 || https != 1 {
		t.Errorf("The origin was asked %d times for A, %d for AAAA, %d for HTTPS", a, aaaa, https)
	}
}

// TestFlagsMatrix asks with every mix of DO, CD, AD and buffer sizes, twice each, for a signed and an unsigned name, through
// a cache whose answers are shuffled.
func TestFlagsMatrix(t *testing.T) {
	o := startOrigin(t, `
		plain.example.org. 300 IN A 203.0.113.1
		plain.example.org. 300 IN A 203.0.113.2
		signed.example.org. 300 IN A 203.0.113.1
		signed.example.org. 300 IN A 203.0.113.2
		signed.example.org. 300 IN RRSIG A 13 3 300 20300101000000 20200101000000 1 example.org. c2lnbmF0dXJl`)
	s := start(t, "longhaul {\nproxy "+proxy+"\nmatch example.org\n}\nloadbalance\ncache\nforward . "+o.addr)
	for _, name := range []string{"plain.example.org.", "signed.example.org."} {
		for bits := range 8 {
			do, cd, ad := bits&1 != 0, bits&2 != 0, bits&4 != 0
			for _, size := range []uint16{0, 512, 1232, 4096} {
				if size == 0 && do {
					continue // there is no DO without EDNS
				}
				for range 2 { // the second is from the cache
					r := new(dns.Msg).SetQuestion(name, dns.TypeA)
					r.CheckingDisabled, r.AuthenticatedData = cd, ad
					if size > 0 {
						r.SetEdns0(size, do)
					}
					m := query(t, s.addr, r)
					got := addresses(m)
					steered := len(got) == 3 && got[0] == proxy && slices.Contains(got, "203.0.113.1") && slices.Contains(got, "203.0.113.2")
					if !steered && (len(got) != 2 || slices.Contains(got, proxy)) {
						t.Errorf("%s with DO %v, CD %v, AD %v, size %d: neither steered nor the truth: %s", name, do, cd, ad, size, m)
					}
					if want := !cd && !(do && name == "signed.example.org."); steered != want {
						t.Errorf("%s with DO %v, CD %v, AD %v, size %d: steered %v", name, do, cd, ad, size, steered)
					}
					if steered && (m.AuthenticatedData || m.Authoritative) {
						t.Errorf("%s with DO %v, CD %v, AD %v, size %d: AD %v, AA %v", name, do, cd, ad, size, m.AuthenticatedData, m.Authoritative)
					}
					if hasOPT := m.IsEdns0() != nil; hasOPT != (size > 0) {
						t.Errorf("%s with size %d: EDNS in the answer %v", name, size, hasOPT)
					}
				}
			}
		}
	}
}

func TestAnswersThatFilledAUDPMessageStillDo(t *testing.T) {
	var zone strings.Builder
	for i := range 29 {
		fmt.Fprintf(&zone, "www.example.org. 300 IN A 203.0.113.%d\n", i)
	}
	o := startOrigin(t, zone.String())
	s := start(t, "longhaul {\nproxy "+proxy+"\nmatch example.org\nmax_origin 64\n}\nforward . "+o.addr)
	m := ask(t, s.addr, "www.example.org.", dns.TypeA)
	m.Compress = true
	if m.Truncated || addresses(m)[0] != proxy || m.Len() > dns.MinMsgSize {
		t.Errorf("Answer of %d bytes, truncated %v: %v", m.Len(), m.Truncated, addresses(m))
	}
}

func TestAZoneOfThisServerIsNotChangedByAnswersFromIt(t *testing.T) {
	zone := file(t, "zone", `
$ORIGIN example.org.
@ 300 IN SOA ns hostmaster 1 3600 1200 604800 300
@ 300 IN NS ns
www 300 IN CNAME web
web 77 IN A 203.0.113.1
web 77 IN A 203.0.113.2
web 77 IN AAAA 2001:db8:1::1
`)
	s := start(t, "longhaul {\nproxy "+proxy+"\nmatch =www.example.org\n}\nfile "+zone+" example.org\ntransfer {\nto *\n}")
	truth := records(ask(t, s.addr, "web.example.org.", dns.TypeA))
	for range 5 {
		if got := addresses(ask(t, s.addr, "www.example.org.", dns.TypeA)); len(got) != 3 || got[0] != proxy {
			t.Errorf("Answer is %v", got)
		}
		if m := ask(t, s.addr, "www.example.org.", dns.TypeAAAA); len(m.Answer) != 1 || m.Ns[0].Header().Name != "web.example.org." {
			t.Errorf("Answer is %s", m)
		}
	}
	if now := records(ask(t, s.addr, "web.example.org.", dns.TypeA)); now != truth {
		t.Errorf("The zone changed from\n%s\nto\n%s", truth, now)
	}

	envelopes, err := new(dns.Transfer).In(new(dns.Msg).SetAxfr("example.org."), s.addr)
	if err != nil {
		t.Fatal(err)
	}
	transferred := 0
	for e := range envelopes {
		if e.Error != nil {
			t.Fatal(e.Error)
		}
		transferred += len(e.RR)
	}
	if transferred != 7 {
		t.Errorf("Transferred %d records", transferred)
	}
}

func TestTheServerSaysWhenItIsReadyAndCountsWhatItDoes(t *testing.T) {
	o := startOrigin(t, "www.example.org. 300 IN A 203.0.113.1\nwww.example.org. 300 IN AAAA 2001:db8:1::1")
	metrics, ready := fmt.Sprintf("127.0.0.1:%d", freePort(t)), fmt.Sprintf("127.0.0.1:%d", freePort(t))
	list := file(t, "allow.txt", "example.org\nexample.net\n")
	s := start(t, "prometheus "+metrics+"\nready "+ready+"\nlonghaul "+list+" {\nproxy "+proxy+"\nown pep.example.net\n}\nforward . "+o.addr)
	eventually(t, "ready", func() bool {
		r, err := http.Get("http://" + ready + "/ready")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	ask(t, s.addr, "www.example.org.", dns.TypeA)
	ask(t, s.addr, "www.example.org.", dns.TypeA)
	ask(t, s.addr, "www.example.org.", dns.TypeAAAA)
	ask(t, s.addr, "nothing.example.org.", dns.TypeA)
	ask(t, s.addr, "pep.example.net.", dns.TypeA)

	r, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`coredns_longhaul_rewrites_total{server="dns://` + s.addr + `",type="A"} 2`,
		`coredns_longhaul_suppressed_total{server="dns://` + s.addr + `",type="AAAA"} 1`,
		`coredns_longhaul_skips_total{reason="error",server="dns://` + s.addr + `"} 1`,
		`coredns_longhaul_own_answers_total{server="dns://` + s.addr + `"} 1`,
		`coredns_longhaul_entries{file="` + list + `"} 2`,
		`coredns_longhaul_steering 1`,
	} {
		if !bytes.Contains(text, []byte(line+"\n")) {
			t.Errorf("Metrics lack %s", line)
		}
	}
}

// TestNoQueryIsLostWhileTheServerReloads reloads the Corefile and the list while clients ask.
func TestNoQueryIsLostWhileTheServerReloads(t *testing.T) {
	o := startOrigin(t, "www.example.org. 300 IN A 203.0.113.1")
	list := file(t, "allow.txt", "example.org\n")
	body := func(ttl int) string {
		return fmt.Sprintf("longhaul %s {\nproxy %s\nreload 10ms\nttl %ds\n}\ncache\nforward . %s", list, proxy, ttl, o.addr)
	}
	s := start(t, body(100))
	var stop atomic.Bool
	var asked, lost atomic.Int64
	var clients sync.WaitGroup
	const reloads, clientsAsking = 5, 2
	for range clientsAsking {
		clients.Go(func() {
			client := dns.Client{Timeout: time.Second}
			for !stop.Load() {
				m, _, err := client.Exchange(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), s.addr)
				asked.Add(1)
				if err != nil || len(addresses(m)) != 2 || addresses(m)[0] != proxy {
					lost.Add(1)
				}
			}
		})
	}
	for i := range reloads {
		if err := s.reload(body(101 + i)); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(list+".new", fmt.Appendf(nil, "example.org\nn%d.example\n", i), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(list+".new", list); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop.Store(true)
	clients.Wait()
	// A client that sent to the old server's socket at the moment it was closed has to ask again; UDP is like that. On a
	// machine too busy for many questions that may be one of each client at each reload.
	if lost.Load() > max(reloads*clientsAsking, asked.Load()/100) {
		t.Errorf("Lost %d of %d queries", lost.Load(), asked.Load())
	}
	if m := ask(t, s.addr, "www.example.org.", dns.TypeA); m.Answer[0].Header().Ttl != 105 {
		t.Errorf("The last Corefile is not in effect: %s", m)
	}
}

func TestARefusedCorefileChangesNothing(t *testing.T) {
	o := startOrigin(t, "www.example.org. 300 IN A 203.0.113.1")
	good := "longhaul {\nproxy " + proxy + "\nmatch example.org\n}\nforward . " + o.addr
	s := start(t, good)
	for _, bad := range []string{
		strings.Replace(good, "match", "matches", 1),
		strings.Replace(good, "longhaul", "longhaul "+file(t, "empty.txt", ""), 1),
	} {
		if err := s.reload(bad); err == nil {
			t.Errorf("Accepted %s", bad)
		}
		if got := addresses(ask(t, s.addr, "www.example.org.", dns.TypeA)); len(got) != 2 || got[0] != proxy {
			t.Errorf("Answer is %v", got)
		}
	}
}

func TestAStoppedServerLeavesNothingRunning(t *testing.T) {
	list := file(t, "allow.txt", "example.org\n")
	s := start(t, "longhaul "+list+" {\nproxy "+proxy+"\nhealth 127.0.0.1:9 100ms\nreload 10ms\n}\nwhoami")
	if !strings.Contains(stacks(), "coredns-plugin.every") {
		t.Fatal("No background task is running")
	}
	if err := s.reload("whoami"); err != nil {
		t.Fatal(err)
	}
	if left := stacks(); strings.Contains(left, "coredns-plugin.every") {
		t.Errorf("Still running:\n%s", left)
	}
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// TestAReloadHoldsAListOnce measures memory: the new server is set up while the old one runs.
func TestAReloadHoldsAListOnce(t *testing.T) {
	var names bytes.Buffer
	for i := range 300_000 {
		fmt.Fprintf(&names, "name-%d.example.org\n", i)
	}
	list := file(t, "allow.txt", names.String())
	names = bytes.Buffer{}
	body := "longhaul " + list + " {\nproxy " + proxy + "\n}\nwhoami"
	empty := heap()
	s := start(t, body)
	loaded := heap() - empty
	if err := s.reload(body); err != nil {
		t.Fatal(err)
	}
	if reloaded := heap() - empty; float64(reloaded) > 1.3*float64(loaded) {
		t.Errorf("The list takes %d bytes, after a reload %d", loaded, reloaded)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
