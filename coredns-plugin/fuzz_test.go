package longhaul

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// FuzzAnswer gives the plugin any query and any upstream answer that a DNS library reads. Whatever they hold: no panic, the
// upstream's message is not changed, and what the client gets is either that message or one that keeps the promises of the
// README.
func FuzzAnswer(f *testing.F) {
	add := func(q, res *dns.Msg) {
		query, err := q.Pack()
		if err != nil {
			f.Fatal(err)
		}
		answer, err := res.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(query, answer)
	}
	for _, lines := range []string{
		"", "www.example.org. 300 IN A 203.0.113.1\nwww.example.org. 60 IN A 203.0.113.2", "www.example.org. 300 IN A 10.0.0.1",
		"www.example.org. 300 IN CNAME w.example.net.\nw.example.net. 60 IN A 203.0.113.1", signedA,
		"www.example.org. 300 IN AAAA 2001:db8:1::1", "www.example.org. 300 IN HTTPS 1 . alpn=h2,h3 ipv4hint=203.0.113.1 ech=AAAA",
		"example.org. 300 IN DNAME example.net.\nwww.example.org. 300 IN CNAME www.example.net.\nwww.example.net. 0 IN A 203.0.113.1",
	} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS, dns.TypeMX} {
			q := question("www.example.org.", qtype)
			res := new(dns.Msg)
			res.SetReply(q)
			res.Answer = parseRecords(lines)
			add(q, res)
			withSubnet(q, 1, 24, "192.0.2.0").IsEdns0().SetDo()
			res.SetEdns0(1232, true)
			add(q, res)
		}
	}

	var upstream *dns.Msg
	var asked uint16
	next := plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if r.Question[0].Qtype != asked { // asked for by the plugin itself
			return answering(r.Question[0].Name+" 300 IN A 203.0.113.1").ServeDNS(context.Background(), w, r)
		}
		return dns.RcodeSuccess, w.WriteMsg(upstream)
	})
	var handlers []*Longhaul
	for _, properties := range []string{"", "mode replace\nhttps strip", "proxy 2001:db8::12\nbypass 192.0.2.0/25\ndnssec break", "ttl 1d\naaaa pass\nhttps pass"} {
		handlers = append(handlers, newPlugin(f, "longhaul {\nproxy 198.51.100.12\nmatch org example\nwww\n"+properties+"\n}", next))
	}
	f.Fuzz(func(t *testing.T, query, answer []byte) {
		r, res := new(dns.Msg), new(dns.Msg)
		if r.Unpack(query) != nil || res.Unpack(answer) != nil || len(res.Question) != 1 || len(r.Question) != 1 || quoted(r.Question[0].Name) {
			return
		}
		upstream, asked = res, r.Question[0].Qtype
		before := res.String()
		for _, l := range handlers {
			rec := dnstest.NewRecorder(&test.ResponseWriter{})
			if _, err := l.ServeDNS(t.Context(), rec, r.Copy()); err != nil {
				t.Fatal(err)
			}
			if res.String() != before {
				t.Fatalf("Upstream's message was changed from\n%s\nto\n%s", before, res)
			}
			if rec.Msg != res {
				checkChanged(t, l, res, rec.Msg)
			}
		}
	})
}

// quoted reports whether a name cannot be written into a zone file line without quoting.
func quoted(name string) bool {
	_, err := dns.NewRR(name + " 300 IN A 203.0.113.1")
	return err != nil
}

// forSeconds returns a message whose records live for 10 seconds at most.
func forSeconds(m *dns.Msg) *dns.Msg {
	m = m.Copy()
	for _, rr := range slices.Concat(m.Answer, m.Ns) {
		rr.Header().Ttl = min(rr.Header().Ttl, 10)
	}
	return m
}

// checkChanged checks what is promised of every answer that is not the truth.
func checkChanged(t *testing.T, l *Longhaul, truth, m *dns.Msg) {
	t.Helper()
	for _, records := range []*dns.Msg{truth, forSeconds(truth)} { // for seconds: until certificates are read
		if m.String() == records.String() {
			return
		}
		if m.IsEdns0() != nil && words(m.Answer) == words(records.Answer) {
			return // with the scope of its client subnet
		}
	}
	if _, err := m.Pack(); err != nil {
		t.Fatalf("Cannot be sent: %v\n%s", err, m)
	}
	if m.Id != truth.Id || m.Rcode != dns.RcodeSuccess || m.Authoritative || m.AuthenticatedData || m.Truncated {
		t.Fatalf("Header is %v", m.MsgHdr)
	}
	var ttl uint32
	for i, rr := range m.Answer {
		h := rr.Header()
		if h.Rrtype == dns.TypeRRSIG {
			t.Fatalf("Holds a signature: %s", rr)
		}
		if h.Rrtype != dns.TypeHTTPS && m.Question[0].Qtype != dns.TypeHTTPS {
			if i > 0 && h.Ttl != ttl {
				t.Fatalf("More than one TTL:\n%s", m)
			}
			ttl = h.Ttl
			if ttl < l.policy.TTL.Min || ttl > l.policy.TTL.Max {
				t.Fatalf("TTL of %d:\n%s", ttl, m)
			}
		}
	}
	switch m.Question[0].Qtype {
	case dns.TypeA, dns.TypeAAAA:
		if family := l.proxy.all.Of(m.Question[0].Qtype); len(family) > 0 {
			for _, rr := range m.Answer {
				if rr.Header().Rrtype == m.Question[0].Qtype {
					if !strings.HasSuffix(rr.String(), "\t"+family[0].String()) {
						t.Fatalf("The proxy is not first:\n%s", m)
					}
					return
				}
			}
			t.Fatalf("Steered without an address:\n%s", m)
		}
		fallthrough
	default:
		has := func(rrs []dns.RR, qtype uint16) bool {
			return slices.ContainsFunc(rrs, func(rr dns.RR) bool { return rr.Header().Rrtype == qtype })
		}
		if !has(m.Answer, m.Question[0].Qtype) && !has(m.Ns, dns.TypeSOA) {
			t.Fatalf("No data without an SOA:\n%s", m)
		}
	}
}
