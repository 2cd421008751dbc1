// Package tell implements a plugin with which the two ends of a pair tell each other what only one of them sees.
//
// A remote cannot see that the ground's resolver is silent or that its disk is full. It asks for TXT records of Problems,
// over the pipe, and the ground answers with the file that `longhaul run` writes, and with its clock. Clients of a remote
// get no answer.
//
// A client whose browser or system asks a resolver over https or TLS looks up the name of that resolver first. Those are
// counted, because that client's other names pass this box by.
//
// A box cannot see from a query that it comes from its own resolver. So it asks its resolver for TXT records of Loop. If
// the answer is its own, the resolver asks this box.
package tell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"

	"github.com/miekg/dns"
)

const (
	pluginName = "tell"

	// Problems and Loop are names that no resolver on the Internet has (RFC 6761 section 6.4).
	Problems = "problems.pair.invalid."
	Loop     = "loop.pair.invalid."

	maxFile   = 16 << 10 // bytes of the file
	maxString = 255      // bytes of one string of a TXT record (RFC 1035 section 3.3.14)
)

// clock is replaced by tests.
var clock = time.Now

// Tell is the plugin's handler.
type Tell struct {
	Next plugin.Handler

	// file is empty where no answer is given.
	file string
	// problems is true where the other end of the pair asks, and nobody else can.
	problems bool
}

// told is the file.
type told struct {
	Run      string          `json:"run"`
	Problems json.RawMessage `json:"problems"`
	Costs    json.RawMessage `json:"costs"`
}

// Name implements the plugin.Handler interface.
func (t *Tell) Name() string { return pluginName }

// ServeDNS implements the plugin.Handler interface.
func (t *Tell) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) != 1 {
		return plugin.NextOrFailure(t.Name(), t.Next, ctx, w, r)
	}
	switch strings.ToLower(r.Question[0].Name) {
	case Loop:
		if t.file != "" {
			return t.answer(w, r, func(now told) string { return now.Run })
		}
	case Problems:
		if t.file != "" && t.problems {
			return t.answer(w, r, func(now told) string {
				costs := ""
				if len(now.Costs) > 0 {
					costs = fmt.Sprintf(`,"costs":%s`, now.Costs)
				}
				return fmt.Sprintf(`{"now":%d,"problems":%s%s}`, clock().Unix(), now.Problems, costs)
			})
		}
		return dns.RcodeNameError, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNameError))
	default:
		count(r.Question[0])
	}
	return plugin.NextOrFailure(t.Name(), t.Next, ctx, w, r)
}

// answer responds with a part of the file. Without the file, the response is empty.
func (t *Tell) answer(w dns.ResponseWriter, r *dns.Msg, part func(told) string) (int, error) {
	m := new(dns.Msg).SetReply(r)
	m.Authoritative = true
	if now, err := read(t.file); err == nil && r.Question[0].Qtype == dns.TypeTXT {
		header := dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}
		m.Answer = []dns.RR{&dns.TXT{Hdr: header, Txt: split(part(now))}}
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func read(path string) (told, error) {
	var now told
	file, err := os.Open(path)
	if err != nil {
		return now, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return now, err
	}
	return now, json.Unmarshal(text, &now)
}

// split cuts a text into the strings of a TXT record, in which a backslash begins an escape.
func split(text string) []string {
	parts := []string{}
	for ; len(text) > maxString; text = text[maxString:] {
		parts = append(parts, escaped(text[:maxString]))
	}
	return append(parts, escaped(text))
}

func escaped(text string) string { return strings.ReplaceAll(text, `\`, `\\`) }
