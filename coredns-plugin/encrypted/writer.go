package encrypted

import (
	"net"

	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// block is the length of which a padded response is a multiple (RFC 8467 section 4.1).
const block = 468

// writer writes a response of an encrypted server. The other plugins see a client of TCP. To them, a client of QUIC is
// one of UDP, whose responses they would truncate (RFC 9250 section 4.3 has no such limit).
type writer struct {
	dns.ResponseWriter
	query *dns.Msg
	pads  bool
}

// newWriter returns a writer in place of w, which is CoreDNS's own.
func newWriter(w dns.ResponseWriter, query *dns.Msg) *writer {
	if scrub, ok := w.(*request.ScrubWriter); ok {
		w = scrub.ResponseWriter // it truncates as well
	}
	return &writer{ResponseWriter: w, query: query, pads: wantsPadding(query)}
}

// RemoteAddr implements the dns.ResponseWriter interface.
func (w *writer) RemoteAddr() net.Addr { return ofTCP(w.ResponseWriter.RemoteAddr()) }

// LocalAddr implements the dns.ResponseWriter interface.
func (w *writer) LocalAddr() net.Addr { return ofTCP(w.ResponseWriter.LocalAddr()) }

// WriteMsg implements the dns.ResponseWriter interface.
func (w *writer) WriteMsg(m *dns.Msg) error {
	state := request.Request{W: w, Req: w.query}
	state.SizeAndDo(m)
	state.Scrub(m)
	if w.pads {
		pad(m)
	}
	return w.ResponseWriter.WriteMsg(m)
}

func ofTCP(addr net.Addr) net.Addr {
	if udp, ok := addr.(*net.UDPAddr); ok {
		return &net.TCPAddr{IP: udp.IP, Port: udp.Port, Zone: udp.Zone}
	}
	return addr
}

// wantsPadding reports whether the query is padded. Only then may a response be (RFC 7830 section 4).
func wantsPadding(query *dns.Msg) bool {
	opt := query.IsEdns0()
	if opt == nil {
		return false
	}
	for _, option := range opt.Option {
		if option.Option() == dns.EDNS0PADDING {
			return true
		}
	}
	return false
}

// pad hides the length of a response from those who see the encrypted bytes.
func pad(m *dns.Msg) {
	opt := m.IsEdns0()
	if opt == nil {
		return
	}
	padding := &dns.EDNS0_PADDING{}
	opt.Option = append(opt.Option, padding)
	wire, err := m.Pack()
	if err != nil {
		return
	}
	if more := (block - len(wire)%block) % block; len(wire)+more <= dns.MaxMsgSize {
		padding.Padding = make([]byte, more)
	}
}
