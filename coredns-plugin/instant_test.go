package longhaul

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"

	"example.org/longhaul/coredns-plugin/apart"
	"example.org/longhaul/coredns-plugin/steer"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

const atOnce = "longhaul {\nproxy 198.51.100.12\nmatch example.org\ninstant 198.18.0.0/15\n}"

// instantly returns the records of a name before the truth is known.
func instantly(name string) string {
	addr, _ := apart.NewAlone(netip.MustParsePrefix("198.18.0.0/15")).Place(name, time.Minute)
	return name + " 10 IN A " + addr.String()
}

// farAway answers from truth, but only when the test lets it.
type farAway struct {
	truth truth
	mu    sync.Mutex
	asked []string
	let   chan struct{}
}

func (f *farAway) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	f.mu.Lock()
	f.asked = append(f.asked, dns.TypeToString[r.Question[0].Qtype])
	f.mu.Unlock()
	select {
	case <-f.let:
	case <-ctx.Done():
		return dns.RcodeServerFailure, ctx.Err()
	}
	return f.truth.ServeDNS(ctx, w, r)
}

func (f *farAway) questions() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.asked, " ")
}

func TestListedNamesAreAnsweredBeforeTheTruthIsKnown(t *testing.T) {
	far := &farAway{truth: answering("www.example.org. 300 IN A 203.0.113.1"), let: make(chan struct{})}
	l := newPlugin(t, atOnce, plugin.HandlerFunc(far.ServeDNS))
	for qtype, want := range map[uint16]string{
		dns.TypeA: instantly("www.example.org."), dns.TypeAAAA: "", dns.TypeHTTPS: "",
	} {
		m := ask(t, l, question("www.example.org.", qtype), &test.ResponseWriter{})
		if got := words(m.Answer); got != want || m.Rcode != dns.RcodeSuccess || !m.RecursionAvailable {
			t.Errorf("%s is answered %q, %v", dns.TypeToString[qtype], got, m.MsgHdr)
		}
		if negative := len(m.Ns) == 1; negative != (want == "") {
			t.Errorf("%s has authority %v", dns.TypeToString[qtype], m.Ns)
		}
	}
	eventually(t, "the question that is asked aside", func() bool { return far.questions() == "A" })
	close(far.let)
}

func TestANameThatDoesNotExistIsAnsweredByTheTruthFromThenOn(t *testing.T) {
	gone := truth{rcode: dns.RcodeNameError, ns: "example.org. 60 IN SOA ns.example.org. host.example.org. 1 2 3 4 60"}
	l := newPlugin(t, atOnce, gone)
	if m := ask(t, l, question("gone.example.org.", dns.TypeA), &test.ResponseWriter{}); m.Rcode != dns.RcodeSuccess {
		t.Fatalf("The first answer is %v", m)
	}
	eventually(t, "NXDOMAIN", func() bool {
		return ask(t, l, question("GONE.example.org.", dns.TypeA), &test.ResponseWriter{}).Rcode == dns.RcodeNameError
	})
	l.Next = answering("gone.example.org. 300 IN A 203.0.113.1")
	if m := ask(t, l, question("gone.example.org.", dns.TypeA), &test.ResponseWriter{}); words(m.Answer) !=
		"gone.example.org. 300 IN A 198.51.100.12\ngone.example.org. 300 IN A 203.0.113.1" {
		t.Errorf("A name that is there again is answered %q", words(m.Answer))
	}
	if m := ask(t, l, question("gone.example.org.", dns.TypeA), &test.ResponseWriter{}); words(m.Answer) !=
		instantly("gone.example.org.") {
		t.Errorf("Then it is answered %q", words(m.Answer))
	}
}

func TestAnInterceptedNameGetsTheTruthOnceItIsKnown(t *testing.T) {
	const a, aaaa = "www.example.org. 300 IN A 203.0.113.1", "www.example.org. 300 IN AAAA 2001:db8:1::1"
	far := &farAway{truth: truth{answers: map[string]string{"A": a, "AAAA": aaaa}}, let: make(chan struct{})}
	l := newPlugin(t, strings.Replace(atOnce, "instant", "intercepted\ninstant", 1), plugin.HandlerFunc(far.ServeDNS))
	for qtype, want := range map[uint16]string{dns.TypeA: instantly("www.example.org."), dns.TypeAAAA: ""} {
		if got := words(ask(t, l, question("www.example.org.", qtype), &test.ResponseWriter{}).Answer); got != want {
			t.Errorf("%s is answered %q", dns.TypeToString[qtype], got)
		}
	}
	close(far.let)
	for qtype, want := range map[uint16]string{dns.TypeA: a, dns.TypeAAAA: aaaa} {
		eventually(t, "the truth", func() bool {
			return words(ask(t, l, question("www.example.org.", qtype), &test.ResponseWriter{}).Answer) == want
		})
	}
}

func TestAnInterceptedNameIsNotSteered(t *testing.T) {
	const a = "www.example.org. 300 IN A 203.0.113.1"
	l := newPlugin(t, "longhaul {\nproxy 198.51.100.12\nmatch example.org\nintercepted\n}", answering(a))
	before := testutil.ToFloat64(l.counts.of("").skips[steer.LeftIntercepted])
	if got := words(ask(t, l, question("www.example.org.", dns.TypeA), &test.ResponseWriter{}).Answer); got != a {
		t.Errorf("Answer is %q", got)
	}
	if counted := testutil.ToFloat64(l.counts.of("").skips[steer.LeftIntercepted]); counted != before+1 {
		t.Errorf("%v counted, before %v", counted, before)
	}
}

func TestANameThatIsPrivateIsNotSentToTheProxyTwice(t *testing.T) {
	l := newPlugin(t, atOnce, answering("intern.example.org. 300 IN A 192.168.1.1"))
	ask(t, l, question("intern.example.org.", dns.TypeA), &test.ResponseWriter{})
	eventually(t, "the truth", func() bool {
		m := ask(t, l, question("intern.example.org.", dns.TypeA), &test.ResponseWriter{})
		return words(m.Answer) == "intern.example.org. 300 IN A 192.168.1.1"
	})
}

func TestALinkThatIsDownSaysNothingAboutAName(t *testing.T) {
	failed := make(chan struct{}, 8)
	l := newPlugin(t, atOnce, plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
		failed <- struct{}{}
		return dns.RcodeServerFailure, errors.New("timeout")
	}))
	ask(t, l, question("www.example.org.", dns.TypeA), &test.ResponseWriter{})
	<-failed
	for range 3 {
		m := ask(t, l, question("www.example.org.", dns.TypeA), &test.ResponseWriter{})
		if got := words(m.Answer); got != instantly("www.example.org.") {
			t.Errorf("Answer is %q", got)
		}
	}
}

func TestOnlyTheTruthWillDo(t *testing.T) {
	checks := question("www.example.org.", dns.TypeA)
	checks.SetEdns0(1232, true)
	itself := question("www.example.org.", dns.TypeA)
	itself.CheckingDisabled = true
	for what, r := range map[string]*dns.Msg{
		"a client that may check signatures": checks, "a client that checks by itself": itself,
		"a name that is not listed":    question("www.example.net.", dns.TypeA),
		"a type that is never steered": question("www.example.org.", dns.TypeMX),
	} {
		asked := false
		l := newPlugin(t, atOnce, plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			asked = true
			return answering(r.Question[0].Name+" 300 IN A 203.0.113.1").ServeDNS(ctx, w, r)
		}))
		if ask(t, l, r, &test.ResponseWriter{}); !asked {
			t.Errorf("With %s nobody was asked", what)
		}
	}
}

func TestAResolverThatFailedSaysNothingAboutAName(t *testing.T) {
	asked := make(chan struct{}, 8)
	l := newPlugin(t, atOnce, plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		defer func() { asked <- struct{}{} }()
		return truth{rcode: dns.RcodeServerFailure}.ServeDNS(ctx, w, r)
	}))
	ask(t, l, question("www.example.org.", dns.TypeA), &test.ResponseWriter{})
	<-asked
	eventually(t, "the end of the question aside", func() bool { return len(l.instant.asking) == 0 })
	m := ask(t, l, question("www.example.org.", dns.TypeA), &test.ResponseWriter{})
	if got := words(m.Answer); got != instantly("www.example.org.") {
		t.Errorf("Answer is %q", got)
	}
}

func TestQuestionsAsideTakeTurns(t *testing.T) {
	far := &farAway{truth: answering("www.example.org. 300 IN A 203.0.113.1"), let: make(chan struct{})}
	l := newPlugin(t, atOnce, plugin.HandlerFunc(far.ServeDNS))
	const names = 12
	for number := range names {
		ask(t, l, question(string(rune('a'+number))+".example.org.", dns.TypeA), &test.ResponseWriter{})
	}
	eventually(t, "all turns taken", func() bool { return len(l.instant.turns) == instantTurns })
	eventually(t, "as many questions as turns", func() bool { return len(strings.Fields(far.questions())) == instantTurns })
	if waiting := len(l.instant.asking); waiting != names {
		t.Errorf("%d questions wait or are on their way, of %d", waiting, names)
	}
	close(far.let)
	eventually(t, "every question", func() bool { return len(strings.Fields(far.questions())) == names })
}
