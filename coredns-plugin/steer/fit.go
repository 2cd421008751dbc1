package steer

import "github.com/miekg/dns"

// fit drops origin addresses from the end of a steered answer until it fits the client's buffer, so that the server has no
// reason to set the truncated bit: a client would ask again over TCP, a round trip for addresses it may never use. The
// chain and the first proxies records are kept; an answer whose chain alone is too long was too long without us.
func fit(query Query, m *dns.Msg, proxies int) {
	size := query.Size
	if size >= dns.MaxMsgSize {
		return
	}
	// The server adds the client's OPT if the answer has none.
	if opt := query.IsEdns0(); opt != nil && m.IsEdns0() == nil {
		size -= dns.Len(opt)
	}
	if roughLen(m) <= size {
		return
	}
	keep := 0
	for keep < len(m.Answer) && m.Answer[keep].Header().Rrtype != query.Question.Qtype {
		keep++
	}
	keep += proxies
	compress := m.Compress
	m.Compress = true // as the server will when the answer does not fit otherwise
	for len(m.Answer) > keep && m.Len() > size {
		m.Answer = m.Answer[:len(m.Answer)-1]
	}
	m.Compress = compress
}

// roughLen is at least the length of m on the wire without compression. Most answers are short, and it costs no look at
// any name.
func roughLen(m *dns.Msg) int {
	const header, fixed = 12, 12 // of a message; of a record, and the length bytes of its names
	n := header
	for _, q := range m.Question {
		n += len(q.Name) + fixed
	}
	for _, rr := range m.Answer {
		n += len(rr.Header().Name) + fixed
		switch rr := rr.(type) {
		case *dns.A:
			n += 4
		case *dns.AAAA:
			n += 16
		case *dns.CNAME:
			n += len(rr.Target) + 1
		default:
			n += dns.Len(rr)
		}
	}
	for _, rr := range m.Extra {
		n += dns.Len(rr)
	}
	return n
}
