package encrypted

import (
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// The names below which clients look for encrypted servers (RFC 9462 sections 4 and 5).
const (
	designated = "_dns.resolver.arpa."
	prefix     = "_dns."
)

// path is the template of RFC 8484 for CoreDNS's only path.
const path = "/dns-query{?dns}"

// longest is the TTL of a designation, unless the certificate ends sooner.
const longest = 5 * time.Minute

// server is an encrypted server.
type server struct {
	alpn string
	port uint16
}

// announcement is what clients hear of the servers.
type announcement struct {
	servers []server // the most wanted first
	v4, v6  []net.IP
}

// portOf returns the port of a server, 0 without one.
func (a announcement) portOf(alpn string) uint16 {
	for _, server := range a.servers {
		if server.alpn == alpn {
			return server.port
		}
	}
	return 0
}

// designation returns the response to a query for the encrypted servers, nil for any other query. Once no certificate is
// valid, the servers have no designation, and clients stay with the port that they have.
func (e *Encrypted) designation(r *dns.Msg) *dns.Msg {
	if r.Opcode != dns.OpcodeQuery || len(r.Question) != 1 || r.Question[0].Qclass != dns.ClassINET || r.Question[0].Qtype != dns.TypeSVCB {
		return nil
	}
	owner := r.Question[0].Name
	asked := strings.ToLower(owner)
	if !strings.HasPrefix(asked, prefix) {
		return nil
	}
	for _, one := range e.store.verifiable() {
		if asked == designated || asked == prefix+one.name {
			m := new(dns.Msg).SetReply(r)
			m.Authoritative = true
			m.Answer = e.announced.records(owner, one)
			return m
		}
	}
	return nil
}

// records returns a record for each server.
func (a announcement) records(owner string, of named) []dns.RR {
	header := dns.RR_Header{Name: owner, Rrtype: dns.TypeSVCB, Class: dns.ClassINET, Ttl: uint32(min(longest, of.left).Seconds())}
	var records []dns.RR
	for i, server := range a.servers {
		record := &dns.SVCB{Hdr: header, Priority: uint16(i + 1), Target: of.name}
		record.Value = append(record.Value, &dns.SVCBAlpn{Alpn: []string{server.alpn}}, &dns.SVCBPort{Port: server.port})
		if len(a.v4) > 0 {
			record.Value = append(record.Value, &dns.SVCBIPv4Hint{Hint: a.v4})
		}
		if len(a.v6) > 0 {
			record.Value = append(record.Value, &dns.SVCBIPv6Hint{Hint: a.v6})
		}
		if server.alpn == overHTTPS {
			record.Value = append(record.Value, &dns.SVCBDoHPath{Template: path})
		}
		records = append(records, record)
	}
	return records
}
