package main

import (
	"net"
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// answerTTLSeconds is the TTL that a well-run site gives its web names. It is so long that nothing expires in a test.
const answerTTLSeconds = 300

// negativeTTLSeconds is the SOA minimum: the time for which a negative response may be cached (RFC 2308 section 5).
const negativeTTLSeconds = 30

// NameServer responds with authority for every name of the site. A name that it does not know does not exist.
type NameServer struct {
	site *Site
	log  *Log
}

// ServeDNS implements dns.Handler.
func (n *NameServer) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	answer := new(dns.Msg).SetReply(query)
	answer.Authoritative = true
	if len(query.Question) != 1 || query.Question[0].Qclass != dns.ClassINET {
		answer.Rcode = dns.RcodeFormatError
		_ = w.WriteMsg(answer)
		return
	}
	question := query.Question[0]
	name := strings.TrimSuffix(strings.ToLower(question.Name), ".")
	n.log.Write(Event{
		Event: "query", Name: name, Type: dns.TypeToString[question.Qtype],
		Remote: w.RemoteAddr().String(), Local: w.LocalAddr().String(),
	})
	known := n.fill(answer, question, name)
	if len(answer.Answer) == 0 {
		if !known {
			answer.Rcode = dns.RcodeNameError
		}
		answer.Ns = []dns.RR{soa(question.Name)}
	}
	if opt := query.IsEdns0(); opt != nil {
		answer.SetEdns0(1232, opt.Do())
	}
	if _, ok := w.RemoteAddr().(*net.UDPAddr); ok {
		answer.Truncate(udpSize(query))
	}
	_ = w.WriteMsg(answer)
}

// udpSize returns the largest response to a query over UDP.
func udpSize(query *dns.Msg) int {
	if opt := query.IsEdns0(); opt != nil {
		return int(opt.UDPSize())
	}
	return dns.MinMsgSize
}

// fill adds the requested records. It returns true if the name exists.
func (n *NameServer) fill(answer *dns.Msg, question dns.Question, name string) bool {
	addresses, known := n.site.records[name]
	host, served := n.site.Hosts[name]
	if served {
		addresses, known = append([]netip.Addr{n.site.address[name]}, addresses...), true
	}
	header := dns.RR_Header{Name: question.Name, Rrtype: question.Qtype, Class: dns.ClassINET, Ttl: answerTTLSeconds}
	switch question.Qtype {
	case dns.TypeA:
		for _, address := range addresses {
			if address.Is4() {
				answer.Answer = append(answer.Answer, &dns.A{Hdr: header, A: net.IP(address.AsSlice())})
			}
		}
	case dns.TypeAAAA:
		for _, address := range addresses {
			if address.Is6() {
				answer.Answer = append(answer.Answer, &dns.AAAA{Hdr: header, AAAA: net.IP(address.AsSlice())})
			}
		}
		if v6, ok := n.site.aaaa[name]; ok {
			answer.Answer = append(answer.Answer, &dns.AAAA{Hdr: header, AAAA: net.IP(v6.AsSlice())})
		}
	case dns.TypeHTTPS:
		if host.HTTPSRecord {
			answer.Answer = append(answer.Answer, httpsRecord(header, n.site.address[name]))
		}
	}
	return known
}

// httpsRecord returns a record that says "speak HTTP/2 to this address" (RFC 9460 section 9). A browser that follows it
// bypasses a proxy that steers by A records alone.
func httpsRecord(header dns.RR_Header, address netip.Addr) dns.RR {
	record := &dns.HTTPS{SVCB: dns.SVCB{Hdr: header, Priority: 1, Target: "."}}
	record.Value = []dns.SVCBKeyValue{
		&dns.SVCBAlpn{Alpn: []string{"h2"}},
		&dns.SVCBIPv4Hint{Hint: []net.IP{net.IP(address.AsSlice())}},
	}
	return record
}

// soa returns the SOA record of the name's last two labels. Every site here counts as delegated there.
func soa(name string) dns.RR {
	labels := dns.SplitDomainName(name)
	zone := dns.Fqdn(strings.Join(labels[max(0, len(labels)-2):], "."))
	below := strings.TrimPrefix(zone, ".") // the root has no label
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: negativeTTLSeconds},
		Ns:  "ns." + below, Mbox: "hostmaster." + below, Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: negativeTTLSeconds,
	}
}
