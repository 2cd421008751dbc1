package steer

import (
	"strings"
	"testing"

	"example.org/longhaul/coredns-plugin/internal/rrtext"

	"github.com/miekg/dns"
)

func TestStripLeavesOnlyWhatLeadsToTheNameItself(t *testing.T) {
	const owner = "www.example.org. 300 IN HTTPS "
	for _, tc := range []struct {
		name, record string
		left         string // "same" for untouched, empty for a record that is gone
	}{
		{"nothing to strip", "1 . alpn=h2", "same"},
		{"no parameters", "1 .", "same"},
		{"HTTP/1.1 only", "1 . alpn=http/1.1", "same"},
		{"own name as the target", "1 www.example.org. alpn=h2", "same"},
		{"own name in another case", "1 WWW.example.org. alpn=h2", "same"},
		{"unknown parameters", `1 . alpn=h2 key65400="x"`, "same"},
		{"ipv4hint", "1 . alpn=h2 ipv4hint=203.0.113.1", "1 . alpn=h2"},
		{"ipv6hint", "1 . ipv6hint=2001:db8::1", "1 ."},
		{"ech", "1 . alpn=h2 ech=AAAA", "1 . alpn=h2"},
		{"h3 beside h2", "1 . alpn=h3,h2", "1 . alpn=h2"},
		{"drafts of h3", "1 . alpn=h3-29,h2,h3-Q050", "1 . alpn=h2"},
		{"h3 only, HTTP/1.1 by default", "1 . alpn=h3", "1 ."},
		{"h3 only, no default", "1 . alpn=h3 no-default-alpn", ""},
		{"h3 and h2, no default", "1 . alpn=h3,h2 no-default-alpn", "1 . alpn=h2 no-default-alpn"},
		{"mandatory hint", "1 . mandatory=ipv4hint alpn=h2 ipv4hint=203.0.113.1", ""},
		{"mandatory alpn that stays", "1 . mandatory=alpn alpn=h2,h3", "1 . mandatory=alpn alpn=h2"},
		{"mandatory alpn that goes", "1 . mandatory=alpn alpn=h3", ""},
		{"another target", "1 svc.example.net. alpn=h2", ""},
		{"alias form", "0 svc.example.net.", ""},
		{"alias form of no service", "0 .", ""},
		{"another port", "1 . alpn=h2 port=8443", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &Policy{HTTPS: HTTPSStrip}
			q := dns.Question{Name: "www.example.org.", Qtype: dns.TypeHTTPS, Qclass: dns.ClassINET}
			res := new(dns.Msg)
			res.Response, res.Question, res.Answer = true, []dns.Question{q}, rrtext.Parse(owner+tc.record)
			before := res.String()
			out, what := p.strip(q, res, 300)
			if res.String() != before {
				t.Errorf("Changed the message it was given to %s", res)
			}
			switch tc.left {
			case "same":
				if what != Kept || out != res {
					t.Errorf("Changed to %s", rrtext.Words(out.Answer))
				}
			case "":
				if what != Suppressed || len(out.Answer) != 0 || len(out.Ns) != 1 {
					t.Errorf("Left %s", rrtext.Words(out.Answer))
				}
			default:
				if got, want := rrtext.Words(out.Answer), rrtext.Tidy(owner+tc.left); what != Stripped || got != want {
					t.Errorf("Left %s, want %s", got, want)
				}
			}
		})
	}
}

func TestStripDropsOnlyTheRecordsThatLeadElsewhere(t *testing.T) {
	p := &Policy{HTTPS: HTTPSStrip}
	q := dns.Question{Name: "www.example.org.", Qtype: dns.TypeHTTPS, Qclass: dns.ClassINET}
	res := new(dns.Msg)
	res.Answer = rrtext.Parse(`
		www.example.org. 300 IN CNAME w.example.net.
		w.example.net. 300 IN HTTPS 1 . alpn=h2
		w.example.net. 300 IN HTTPS 2 pool.example.net. alpn=h2`)
	out, what := p.strip(q, res, 300)
	if got := rrtext.Words(out.Answer); what != Stripped || got != strings.Join([]string{"www.example.org. 300 IN CNAME w.example.net.", `w.example.net. 300 IN HTTPS 1 . alpn="h2"`}, "\n") {
		t.Errorf("Left %s", got)
	}
}

func TestStripDropsRecordsThatCannotBeSent(t *testing.T) {
	p := &Policy{HTTPS: HTTPSStrip}
	q := dns.Question{Name: "www.example.org.", Qtype: dns.TypeHTTPS, Qclass: dns.ClassINET}
	res := new(dns.Msg)
	res.Answer = rrtext.Parse("www.example.org. 300 IN HTTPS 1 . alpn=h2\nwww.example.org. 300 IN HTTPS 2 . alpn=h2,h3")
	res.Answer[1].(*dns.HTTPS).Value[0].(*dns.SVCBAlpn).Alpn[1] = ""
	out, what := p.strip(q, res, 300)
	if got := rrtext.Words(out.Answer); what != Stripped || got != `www.example.org. 300 IN HTTPS 1 . alpn="h2"` {
		t.Errorf("Left %s", got)
	}
	if _, err := out.Pack(); err != nil {
		t.Errorf("Cannot be sent: %v", err)
	}
}

func TestStripFlattensTheChainWhenAskedTo(t *testing.T) {
	p := &Policy{HTTPS: HTTPSStrip, Flatten: true}
	q := dns.Question{Name: "www.example.org.", Qtype: dns.TypeHTTPS, Qclass: dns.ClassINET}
	res := new(dns.Msg)
	res.Answer = rrtext.Parse("www.example.org. 300 IN CNAME w.example.net.\nw.example.net. 300 IN HTTPS 1 w.example.net. alpn=h2")
	before := res.String()
	out, what := p.strip(q, res, 300)
	if got := rrtext.Words(out.Answer); what != Stripped || got != `www.example.org. 300 IN HTTPS 1 . alpn="h2"` {
		t.Errorf("Left %s", got)
	}
	if res.String() != before {
		t.Errorf("Changed the message it was given to %s", res)
	}
}
