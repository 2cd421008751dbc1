package longhaul

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/test"

	"example.org/longhaul/coredns-plugin/internal/explain"

	"github.com/miekg/dns"
)

// explanation returns the code and the text of a response's extended error, if it has one.
func explanation(m *dns.Msg) (code uint16, text string) {
	if opt := m.IsEdns0(); opt != nil {
		for _, option := range opt.Option {
			if ede, ok := option.(*dns.EDNS0_EDE); ok {
				return ede.InfoCode, ede.ExtraText
			}
		}
	}
	return 0, ""
}

func TestProgramsOfThisMachineLearnTheVerdict(t *testing.T) {
	const corefile = "longhaul {\nproxy 198.51.100.12\nmatch example.org\nexcept bank.example.org\nbypass 127.0.0.2\n}"
	for _, c := range []struct {
		name, source, starts string
		asks                 bool
		code                 uint16
	}{
		{"example.org.", "127.0.0.1", "steered: ", true, dns.ExtendedErrorCodeForgedAnswer},
		{"bank.example.org.", "127.0.0.1", "except: ", true, dns.ExtendedErrorCodeOther},
		{"example.org.", "127.0.0.2", "client: ", true, dns.ExtendedErrorCodeOther},
		{"example.org.", "127.0.0.1", "", false, 0},
		{"example.org.", "192.0.2.7", "", true, 0},
		{"example.net.", "127.0.0.1", "", true, 0},
	} {
		l := newPlugin(t, corefile, answering(c.name+" 300 IN A 203.0.113.1"))
		r := question(c.name, dns.TypeA)
		r.SetEdns0(1232, false)
		if c.asks {
			r.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: explain.Option}}
		}
		m := ask(t, l, r, &test.ResponseWriter{RemoteIP: c.source})
		code, text := explanation(m)
		if code != c.code || !strings.HasPrefix(text, c.starts) || (text == "") != (c.starts == "") {
			t.Errorf("%s from %s: code %d, %q", c.name, c.source, code, text)
		}
		if len(m.Answer) == 0 {
			t.Errorf("%s from %s has no address", c.name, c.source)
		}
	}
}
