package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func response(name string) *dns.Msg {
	m := new(dns.Msg).SetReply(new(dns.Msg).SetQuestion(name, dns.TypeA))
	m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: []byte{203, 0, 113, 1}}}
	return m
}

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	hello := Hello{ID: ID{1, 2}, Token: Token{3, 4}, Period: 5, Keeps: 7 * 24 * time.Hour}
	used := Used{Client: 0xdeadbeef, Question: Question{"www.example.org.", dns.TypeHTTPS}}
	var stream []byte
	stream = AppendHello(stream, hello)
	stream = AppendUsed(stream, used)
	stream = AppendUsed(stream, Used{Question: Question{Name: strings.Repeat("x", 300)}})
	stream = AppendPeriod(stream, 9)
	stream = AppendGroundHello(stream)
	stream = AppendAnswer(stream, response("www.example.org."))
	in := NewReader(bytes.NewReader(stream))
	next := func(want Kind) []byte {
		t.Helper()
		kind, body, err := in.Next()
		if err != nil || kind != want {
			t.Fatalf("Got %c, %v", kind, err)
		}
		return body
	}
	if got, err := ReadHello(next(KindHello)); err != nil || got != hello {
		t.Errorf("Hello is %+v, %v", got, err)
	}
	if got, err := ReadUsed(next(KindUsed)); err != nil || got != used {
		t.Errorf("Use is %+v, %v", got, err)
	}
	if got, err := ReadPeriod(next(KindPeriod)); err != nil || got != 9 {
		t.Errorf("Period is %d, %v", got, err)
	}
	if err := ReadGroundHello(next(KindHello)); err != nil {
		t.Error(err)
	}
	if got, err := ReadAnswer(next(KindAnswer)); err != nil || got.Answer[0].String() != response("www.example.org.").Answer[0].String() {
		t.Errorf("Response is %v, %v", got, err)
	}
	if _, _, err := in.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("At the end: %v", err)
	}
}

func TestABadFrameIsAnError(t *testing.T) {
	for name, text := range map[string][]byte{
		"empty":         {0},
		"cut short":     {9, 'h', 1},
		"no end":        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"too long":      {0x80, 0x80, 0x10, 'a'},
		"a long length": append([]byte{0xff, 0xff, 0x03}, 'a'),
	} {
		if _, _, err := NewReader(bytes.NewReader(text)).Next(); err == nil {
			t.Errorf("A frame that is %s is read", name)
		}
	}
	for _, body := range [][]byte{nil, {1}, {1, 2, 3}, {0x80}, make([]byte, 27), append(append([]byte{1}, make([]byte, 26)...), 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)} {
		if _, err := ReadHello(body); err == nil {
			t.Errorf("Hello %v is read", body)
		}
	}
	if _, err := ReadHello([]byte{2}); !errors.Is(err, ErrVersion) {
		t.Errorf("A later version: %v", err)
	}
	if err := ReadGroundHello([]byte{2}); !errors.Is(err, ErrVersion) {
		t.Errorf("A later version: %v", err)
	}
	for _, body := range [][]byte{nil, {0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 1, 3, 'a'}, {0, 0, 0, 0, 0, 1, 0, 0}} {
		if _, err := ReadUsed(body); err == nil {
			t.Errorf("Use %v is read", body)
		}
	}
}

func TestAMarkIsReadAndRemoved(t *testing.T) {
	mark := Mark{Token: Token{1, 2, 3}, Client: 77, Refresh: true}
	for _, size := range []uint16{0, 4096} {
		query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		if size > 0 {
			query.SetEdns0(size, true)
			query.IsEdns0().Option = []dns.EDNS0{
				&dns.EDNS0_LOCAL{Code: markCode, Data: []byte("a client's")},
				&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"},
			}
		}
		mark.Put(query)
		wire, err := query.Pack()
		if err != nil {
			t.Fatal(err)
		}
		got := new(dns.Msg)
		if err := got.Unpack(wire); err != nil {
			t.Fatal(err)
		}
		plain, read, ok := Unmark(got)
		if !ok || read != mark {
			t.Errorf("Mark is %+v, %v", read, ok)
		}
		if opt := plain.IsEdns0(); len(opt.Option) != min(1, int(size)) || opt.Do() != (size > 0) {
			t.Errorf("Without the mark, the query has %v", opt)
		}
		if _, _, ok := Unmark(plain); ok {
			t.Error("The mark is still there")
		}
	}
	query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	if plain, _, ok := Unmark(query); ok || plain != query {
		t.Error("A query without options has a mark")
	}
	query.SetEdns0(1232, false)
	query.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: markCode, Data: []byte("short")}}
	if plain, _, ok := Unmark(query); ok || len(plain.IsEdns0().Option) != 0 {
		t.Error("A short mark is one, or stays")
	}
}

func TestOnlyWhatBrowsersAskIsSent(t *testing.T) {
	for _, c := range []struct {
		change func(*dns.Msg)
		want   bool
	}{
		{func(*dns.Msg) {}, true},
		{func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeHTTPS }, true},
		{func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeTXT }, false},
		{func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }, false},
		{func(m *dns.Msg) { m.CheckingDisabled = true }, false},
		{func(m *dns.Msg) { m.SetEdns0(1232, true) }, false},
		{func(m *dns.Msg) { m.SetEdns0(1232, false) }, true},
		{func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }, false},
		{func(m *dns.Msg) { m.Question = nil }, false},
	} {
		query := new(dns.Msg).SetQuestion("WWW.example.org.", dns.TypeA)
		c.change(query)
		question, ok := QuestionOf(query)
		if ok != c.want || ok && question.Name != "www.example.org." {
			t.Errorf("%v: %v, %v", query.Question, question, ok)
		}
	}
}

// FuzzNext gives both ends any bytes. They are read or refused, and what is read can be written again.
func FuzzNext(f *testing.F) {
	f.Add(AppendHello(nil, Hello{ID: ID{1}, Keeps: time.Hour}))
	f.Add(AppendUsed(AppendPeriod(nil, 1), Used{1, Question{"www.example.org.", 1}}))
	f.Add(AppendAnswer(AppendGroundHello(nil), response("www.example.org.")))
	f.Fuzz(func(t *testing.T, text []byte) {
		in := NewReader(bytes.NewReader(text))
		for {
			_, body, err := in.Next()
			if err != nil {
				return
			}
			if hello, err := ReadHello(body); err == nil {
				_, again, err := NewReader(bytes.NewReader(AppendHello(nil, hello))).Next()
				if same, failed := ReadHello(again); err != nil || failed != nil || same != hello {
					t.Errorf("Hello %+v becomes %+v", hello, same)
				}
			}
			if used, err := ReadUsed(body); err == nil {
				_, again, err := NewReader(bytes.NewReader(AppendUsed(nil, used))).Next()
				if same, failed := ReadUsed(again); err != nil || failed != nil || same != used {
					t.Errorf("Use %+v becomes %+v", used, same)
				}
			}
			_, _ = ReadPeriod(body)
			_ = ReadGroundHello(body)
			if m, err := ReadAnswer(body); err == nil {
				AppendAnswer(nil, m)
			}
		}
	})
}
