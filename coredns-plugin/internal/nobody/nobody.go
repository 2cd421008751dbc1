// Package nobody is the writer of a query that no client waits for.
package nobody

import (
	"net"

	"github.com/miekg/dns"
)

// Writer has the address of the client for whom the query is, if it is for one. By TCP's address, no response is cut to the size
// of UDP.
type Writer struct{ Client net.IP }

// LocalAddr implements the dns.ResponseWriter interface, as the methods below do.
func (Writer) LocalAddr() net.Addr         { return &net.TCPAddr{} }
func (w Writer) RemoteAddr() net.Addr      { return &net.TCPAddr{IP: w.Client} }
func (Writer) WriteMsg(*dns.Msg) error     { return nil }
func (Writer) Write(b []byte) (int, error) { return len(b), nil }
func (Writer) Close() error                { return nil }
func (Writer) TsigStatus() error           { return nil }
func (Writer) TsigTimersOnly(bool)         {}
func (Writer) Hijack()                     {}
