package remember

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/test"

	"example.org/longhaul/coredns-plugin/internal/explain"
	"example.org/longhaul/coredns-plugin/push/wire"

	"github.com/miekg/dns"
)

func pushed(name string, qtype uint16, answer, authority string) *dns.Msg {
	m := new(dns.Msg).SetReply(query(name, qtype))
	m.Answer, m.Ns = parsed(answer), parsed(authority)
	return m
}

func TestAPushedResponseAnswersTheFirstQuery(t *testing.T) {
	b := bedOf(t)
	if fate := b.taken(pushed("www.example.org.", dns.TypeA, twoAddresses, "")); fate != "kept" {
		t.Errorf("It is %s", fate)
	}
	b.pass(10 * time.Second)
	key, _ := keyOf(query("www.example.org.", dns.TypeA))
	if _, is := b.recall(key, b.memory.Peek); !is.unasked || !is.pushed {
		t.Errorf("Before the query: %+v", is)
	}
	b.expect("first query", "NOERROR 203.0.113.1 203.0.113.2 50", 0)
	if _, is := b.recall(key, b.memory.Peek); is.unasked || !is.pushed {
		t.Errorf("After the query: %+v", is)
	}
	b.pass(time.Minute)
	b.get(query("www.example.org.", dns.TypeA))
	b.awaitRefresh(1)
	if _, is := b.recall(key, b.memory.Peek); is.pushed {
		t.Errorf("After a refresh: %+v", is)
	}
}

func TestAClientThatWaitsGetsThePushedResponse(t *testing.T) {
	b := bedOf(t)
	release := make(chan struct{})
	b.upstream.set(func(u *upstream) { u.release = release })
	got := make(chan string)
	for range 2 {
		go func() {
			w := &kept{ResponseWriter: &test.ResponseWriter{}}
			_, _ = b.Remember.ServeDNS(t.Context(), w, query("www.example.org.", dns.TypeA))
			got <- summary(w.m)
		}()
	}
	b.await("the query is sent on", func() bool { return len(b.queries()) == 1 })
	b.taken(pushed("www.example.org.", dns.TypeA, "www.example.org. 60 IN A 203.0.113.9", ""))
	for range 2 {
		if text := <-got; text != "NOERROR 203.0.113.9 60" {
			t.Errorf("Response is %q", text)
		}
	}
	close(release)
	b.await("the response to the query is kept", func() bool {
		return summary(b.get(query("www.example.org.", dns.TypeA))) == "NOERROR 203.0.113.1 203.0.113.2 60"
	})
	b.expectQueries("all", 1)
}

func TestAPushedDenialHoldsForItsTTL(t *testing.T) {
	b := bedOf(t)
	b.upstream.set(func(u *upstream) { u.answer, u.deny = "", soa })
	if fate := b.taken(pushed("www.example.org.", dns.TypeHTTPS, "", soa)); fate != "kept" {
		t.Errorf("It is %s", fate)
	}
	for _, queries := range []int{0, 0, 1} {
		if m := b.get(query("www.example.org.", dns.TypeHTTPS)); len(m.Answer) != 0 || len(m.Ns) != 1 {
			t.Errorf("Response is\n%s", m)
		}
		b.expectQueries("denial", queries)
		b.pass(59 * time.Second)
	}
}

func TestWhatSaysNothingAboutItsNameIsRefused(t *testing.T) {
	other := "bank.example.org. 60 IN A 203.0.113.66"
	for name, m := range map[string]*dns.Msg{
		"no question":       {},
		"another name":      pushed("www.example.org.", dns.TypeA, other, ""),
		"another one, too":  pushed("www.example.org.", dns.TypeA, twoAddresses+"\n"+other, ""),
		"another type":      pushed("www.example.org.", dns.TypeTXT, `www.example.org. 60 IN TXT "x"`, ""),
		"nothing":           pushed("www.example.org.", dns.TypeA, "", ""),
		"a chain to no end": pushed("www.example.org.", dns.TypeA, "www.example.org. 60 IN CNAME b.example.org.", ""),
		"a circle":          pushed("www.example.org.", dns.TypeA, "www.example.org. 60 IN CNAME www.example.org.", ""),
		"a failure":         new(dns.Msg).SetRcode(query("www.example.org.", dns.TypeA), dns.RcodeServerFailure),
		"an absent name":    new(dns.Msg).SetRcode(query("www.example.org.", dns.TypeA), dns.RcodeNameError),
	} {
		b := bedOf(t)
		if fate := b.taken(m); fate != "refused" {
			t.Errorf("%s is %s", name, fate)
		}
		b.expect(name, "NOERROR 203.0.113.1 203.0.113.2 60", 1)
	}
	b := bedOf(t)
	extra := pushed("www.example.org.", dns.TypeA, twoAddresses, "")
	extra.Extra = parsed(other)
	if fate := b.taken(extra); fate != "refused" {
		t.Errorf("With another record, it is %s", fate)
	}
}

func TestAPushedResponseReplacesNoFreshOne(t *testing.T) {
	b := bedOf(t)
	b.expect("asked", "NOERROR 203.0.113.1 203.0.113.2 60", 1)
	later := pushed("www.example.org.", dns.TypeA, "www.example.org. 300 IN A 203.0.113.9", "")
	if fate := b.taken(later); fate != "known" {
		t.Errorf("It is %s", fate)
	}
	b.expect("still fresh", "NOERROR 203.0.113.1 203.0.113.2 60", 1)
	b.pass(time.Hour)
	if fate := b.taken(later); fate != "kept" {
		t.Errorf("Later it is %s", fate)
	}
	b.expect("the later one", "NOERROR 203.0.113.9 300", 1)
}

func TestAPushedResponseIsKeptOverARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	b := newBed(t, path)
	b.taken(pushed("www.example.org.", dns.TypeA, twoAddresses, ""))
	id := b.memory.id
	if err := b.memory.close(); err != nil {
		t.Fatal(err)
	}
	again := newBed(t, path)
	again.expect("after a restart", "NOERROR 203.0.113.1 203.0.113.2 60", 0)
	if again.memory.id != id || id == (wire.ID{}) {
		t.Error("The memory has another identifier")
	}
	if err := again.memory.close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if empty := newBed(t, path); empty.memory.id == id {
		t.Error("An empty memory has the identifier of the one before")
	}
}

// local is a client on this machine.
type local struct{ kept }

func (*local) RemoteAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func TestALocalClientLearnsTheSource(t *testing.T) {
	b := bedOf(t)
	desired := false
	ask := func(w dns.ResponseWriter) *dns.Msg {
		r := query("www.example.org.", dns.TypeA)
		r.RecursionDesired = desired
		r.SetEdns0(1232, false)
		r.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: explain.Option}}
		if _, err := b.Remember.ServeDNS(t.Context(), w, r); err != nil {
			t.Fatal(err)
		}
		for _, asked := range b.queries() {
			if opt := asked.IsEdns0(); opt != nil && len(opt.Option) > 0 {
				t.Error("The option leaves the box")
			}
		}
		switch w := w.(type) {
		case *local:
			return w.m
		case *kept:
			return w.m
		}
		return nil
	}
	source := func() string {
		w := &local{kept{ResponseWriter: &test.ResponseWriter{}}}
		m := ask(w)
		for _, option := range m.IsEdns0().Option {
			if option.Option() == explain.Option {
				return string(option.(*dns.EDNS0_LOCAL).Data)
			}
		}
		return ""
	}
	for _, c := range []struct {
		want   string
		change func()
	}{
		{"unknown: ", func() {}},
		{"asked: ", func() { desired = true }},
		{"remembered: a query brought it, 9s ago", func() { b.pass(9 * time.Second) }},
		{"remembered: a query brought it, 1h0m9s ago. It is stale", func() { b.pass(time.Hour) }},
		{"pushed: the ground sent it before it was asked, 1s ago", func() {
			b.taken(pushed("www.example.org.", dns.TypeA, twoAddresses, ""))
			b.pass(time.Second)
		}},
		{"pushed: ", func() {}},
	} {
		c.change()
		if got := source(); !strings.HasPrefix(got, c.want) {
			t.Errorf("Source is %q, want %q", got, c.want)
		}
	}
	if m := ask(&kept{ResponseWriter: &test.ResponseWriter{}}); m.IsEdns0() != nil {
		t.Error("Another machine learns the source")
	}
	b.expectQueries("explained", 1)
}
