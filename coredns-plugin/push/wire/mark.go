package wire

import (
	"encoding/binary"
	"slices"

	"github.com/miekg/dns"
)

// markCode is the EDNS option of a query that says which stream it belongs to, and for which client it is. It is from the
// range for local use (RFC 6891 section 9). It never leaves the pair: the ground removes it.
const markCode = 65031

const (
	markBytes = len(Token{}) + 4 + 1
	// refreshes is the bit of the last byte for a query that no client waits for.
	refreshes = 1
	// udpBytes is what a query that had no options says that it takes in UDP (DNS flag day 2020).
	udpBytes = 1232
)

// Mark is what the option says.
type Mark struct {
	Token  Token
	Client Hash
	// Refresh is true if the remote has a response that it serves meanwhile.
	Refresh bool
}

// Put adds the option to a query. An option with this code that the query has, a client wrote: it is replaced.
func (m Mark) Put(query *dns.Msg) {
	RemoveMark(query)
	opt := query.IsEdns0()
	if opt == nil {
		query.SetEdns0(udpBytes, false)
		opt = query.IsEdns0()
	}
	data := append(binary.BigEndian.AppendUint32(slices.Clone(m.Token[:]), uint32(m.Client)), 0)
	if m.Refresh {
		data[markBytes-1] |= refreshes
	}
	opt.Option = append(opt.Option, &dns.EDNS0_LOCAL{Code: markCode, Data: data})
}

// Unmark returns the query without the option, and what the option says, false if it says nothing. The query itself stays as
// it is.
func Unmark(query *dns.Msg) (*dns.Msg, Mark, bool) {
	opt := query.IsEdns0()
	if opt == nil || !slices.ContainsFunc(opt.Option, marks) {
		return query, Mark{}, false
	}
	plain := query.Copy()
	data := unmark(plain)
	if len(data) != markBytes {
		return plain, Mark{}, false
	}
	var m Mark
	rest := data[copy(m.Token[:], data):]
	m.Client, m.Refresh = Hash(binary.BigEndian.Uint32(rest)), rest[4]&refreshes != 0
	return plain, m, true
}

// RemoveMark removes the option from a query, whoever wrote it.
func RemoveMark(query *dns.Msg) { unmark(query) }

// unmark removes the option, and returns what was in the last of them.
func unmark(query *dns.Msg) (data []byte) {
	opt := query.IsEdns0()
	if opt == nil {
		return nil
	}
	opt.Option = slices.DeleteFunc(opt.Option, func(option dns.EDNS0) bool {
		if !marks(option) {
			return false
		}
		if local, ok := option.(*dns.EDNS0_LOCAL); ok {
			data = local.Data
		}
		return true
	})
	return data
}

func marks(option dns.EDNS0) bool { return option.Option() == markCode }
