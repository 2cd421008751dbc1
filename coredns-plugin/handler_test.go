package longhaul

import (
	"context"
	"errors"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

const oneName = "longhaul {\nproxy 198.51.100.12\nmatch example.org\n}"

func question(name string, qtype uint16) *dns.Msg {
	r := new(dns.Msg)
	return r.SetQuestion(name, qtype)
}

func answering(lines string) truth {
	return truth{answers: map[string]string{"A": lines}}
}

func TestQueriesThatAreNotOursPassUntouched(t *testing.T) {
	axfr, ixfr := question("example.org.", dns.TypeAXFR), question("example.org.", dns.TypeIXFR)
	update := question("example.org.", dns.TypeA)
	update.Opcode = dns.OpcodeUpdate
	chaos := question("example.org.", dns.TypeA)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	none, two := new(dns.Msg), question("example.org.", dns.TypeA)
	two.Question = append(two.Question, two.Question[0])
	for name, r := range map[string]*dns.Msg{
		"AXFR": axfr, "IXFR": ixfr, "an update": update, "class CHAOS": chaos, "no question": none, "two questions": two,
	} {
		answer := new(dns.Msg)
		answer.Answer = parseRecords("example.org. 300 IN A 203.0.113.1")
		next := plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, _ *dns.Msg) (int, error) {
			_ = w.WriteMsg(answer)
			return dns.RcodeRefused, errors.New("from the next plugin")
		})
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		rcode, err := newPlugin(t, oneName, next).ServeDNS(t.Context(), rec, r)
		if rec.Msg != answer || rcode != dns.RcodeRefused || err == nil {
			t.Errorf("With %s: message %v, rcode %d, error %v", name, rec.Msg, rcode, err)
		}
	}
}

func TestAPluginThatWritesNothingIsReportedAsItIs(t *testing.T) {
	failure := errors.New("upstream is down")
	for name, next := range map[string]plugin.HandlerFunc{
		"nothing": func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
			return dns.RcodeServerFailure, failure
		},
		"a nil message": func(_ context.Context, w dns.ResponseWriter, _ *dns.Msg) (int, error) {
			_ = w.WriteMsg(nil)
			return dns.RcodeServerFailure, failure
		},
	} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS} {
			rec := dnstest.NewRecorder(&test.ResponseWriter{})
			rcode, err := newPlugin(t, oneName, next).ServeDNS(t.Context(), rec, question("example.org.", qtype))
			if rcode != dns.RcodeServerFailure || !errors.Is(err, failure) || rec.Msg != nil {
				t.Errorf("With %s for %s: rcode %d, error %v, message %v", name, dns.TypeToString[qtype], rcode, err, rec.Msg)
			}
		}
	}
}

func TestAAAAPassesWhenTheAddressLookupFails(t *testing.T) {
	next := plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if r.Question[0].Qtype == dns.TypeA {
			return dns.RcodeServerFailure, errors.New("timeout")
		}
		return truth{answers: map[string]string{"AAAA": "example.org. 300 IN AAAA 2001:db8::1"}}.ServeDNS(ctx, w, r)
	})
	m := ask(t, newPlugin(t, oneName, next), question("example.org.", dns.TypeAAAA), &test.ResponseWriter{})
	if got := words(m.Answer); got != "example.org. 300 IN AAAA 2001:db8::1" {
		t.Errorf("Answer is %q", got)
	}
}

func TestARequestRenamedByALaterPluginIsStillAnsweredByItsOwnName(t *testing.T) {
	next := plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg)
		m.SetReply(r)
		m.Question = []dns.Question{r.Question[0]}
		m.Answer = parseRecords("example.org. 300 IN A 203.0.113.1")
		r.Question[0].Name = "renamed.example.net." // as the rewrite plugin does with a response
		return dns.RcodeSuccess, w.WriteMsg(m)
	})
	m := ask(t, newPlugin(t, oneName, next), question("example.org.", dns.TypeA), &test.ResponseWriter{})
	if got := words(m.Answer); got != "example.org. 300 IN A 198.51.100.12\nexample.org. 300 IN A 203.0.113.1" {
		t.Errorf("Answer is %q", got)
	}
}

func TestTheServersOwnEDNSRecordIsWrittenIntoACopy(t *testing.T) {
	upstream := new(dns.Msg)
	next := plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		upstream.SetReply(r)
		upstream.Answer = parseRecords("example.org. 300 IN A 203.0.113.1")
		upstream.SetEdns0(1400, false)
		return dns.RcodeSuccess, w.WriteMsg(upstream)
	})
	r := question("example.org.", dns.TypeA)
	r.SetEdns0(4096, true)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if _, err := newPlugin(t, oneName, next).ServeDNS(t.Context(), request.NewScrubWriter(r, rec), r); err != nil {
		t.Fatal(err)
	}
	if opt := rec.Msg.IsEdns0(); opt == nil || opt.UDPSize() != 4096 || !opt.Do() || len(rec.Msg.Extra) != 1 {
		t.Errorf("The client gets %v", rec.Msg.Extra)
	}
	if opt := upstream.IsEdns0(); opt.UDPSize() != 1400 || opt.Do() {
		t.Errorf("The upstream's record was changed to %v", opt)
	}
}

type failingWriter struct{ test.ResponseWriter }

var errWrite = errors.New("client is gone")

func (failingWriter) WriteMsg(*dns.Msg) error { return errWrite }

func TestAWriteErrorIsReturned(t *testing.T) {
	l := newPlugin(t, oneName, answering("example.org. 300 IN A 203.0.113.1"))
	if _, err := l.ServeDNS(t.Context(), &failingWriter{}, question("example.org.", dns.TypeA)); !errors.Is(err, errWrite) {
		t.Errorf("Error is %v", err)
	}
}

func TestOwnNamesAreAnsweredWithTheProxysAddresses(t *testing.T) {
	const soa = "pep.example.net. 300 IN SOA longhaul.invalid. nobody.invalid. 1 3600 1200 604800 300"
	const both = "longhaul {\nproxy 198.51.100.12 2001:db8::12\nown pep.example.net\nalpn h2 h3\nmatch example.net\nbypass 10.240.0.1\n}"
	const v4 = "longhaul {\nproxy 198.51.100.12\nown pep.example.net\n}"
	for _, tc := range []struct {
		corefile   string
		name       string
		qtype      uint16
		answer, ns string
	}{
		{both, "pep.example.net.", dns.TypeA, "pep.example.net. 300 IN A 198.51.100.12", ""},
		{both, "Pep.Example.NET.", dns.TypeA, "Pep.Example.NET. 300 IN A 198.51.100.12", ""},
		{both, "pep.example.net.", dns.TypeAAAA, "pep.example.net. 300 IN AAAA 2001:db8::12", ""},
		{both, "pep.example.net.", dns.TypeHTTPS, `pep.example.net. 300 IN HTTPS 1 . alpn="h2,h3"`, ""},
		{both, "pep.example.net.", dns.TypeTXT, "the next plugin's", ""},
		{both, "below.pep.example.net.", dns.TypeA, "the next plugin's", ""},
		{v4, "pep.example.net.", dns.TypeAAAA, "", soa},
		{v4, "pep.example.net.", dns.TypeHTTPS, "", soa},
	} {
		reached := false
		next := plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
			reached = true
			return dns.RcodeRefused, nil
		})
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if _, err := newPlugin(t, tc.corefile, next).ServeDNS(t.Context(), rec, question(tc.name, tc.qtype)); err != nil {
			t.Fatal(err)
		}
		if wantNext := tc.answer == "the next plugin's"; reached != wantNext {
			t.Errorf("%s %s reached the next plugin: %v", tc.name, dns.TypeToString[tc.qtype], reached)
		} else if wantNext {
			continue
		}
		if got := words(rec.Msg.Answer); got != tc.answer {
			t.Errorf("Answer is %q, want %q", got, tc.answer)
		}
		if got := words(rec.Msg.Ns); got != tc.ns {
			t.Errorf("Authority is %q, want %q", got, tc.ns)
		}
		if rec.Msg.Rcode != dns.RcodeSuccess || !rec.Msg.RecursionAvailable {
			t.Errorf("Header is %v", rec.Msg.MsgHdr)
		}
	}
}

func TestCanariesAreAnsweredNegativelyOnlyWhenAskedTo(t *testing.T) {
	for _, name := range []string{"use-application-dns.net.", "mask.icloud.com.", "mask-h2.icloud.com."} {
		next := answering(name + " 300 IN A 203.0.113.1")
		on := ask(t, newPlugin(t, "longhaul {\nproxy 198.51.100.12\ncanary\n}", next), question(name, dns.TypeA), &test.ResponseWriter{})
		if len(on.Answer) != 0 || len(on.Ns) != 1 || on.Ns[0].Header().Rrtype != dns.TypeSOA || on.Rcode != dns.RcodeSuccess {
			t.Errorf("With canary %s gets %s", name, on)
		}
		off := ask(t, newPlugin(t, oneName, next), question(name, dns.TypeA), &test.ResponseWriter{})
		if len(off.Answer) != 1 {
			t.Errorf("Without canary %s gets %s", name, off)
		}
	}
	below := ask(t, newPlugin(t, "longhaul {\nproxy 198.51.100.12\ncanary\n}", answering("x.mask.icloud.com. 300 IN A 203.0.113.1")),
		question("x.mask.icloud.com.", dns.TypeA), &test.ResponseWriter{})
	if len(below.Answer) != 1 {
		t.Errorf("A name below a canary gets %s", below)
	}
}
