package longhaul_test

import (
	"crypto"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// downstreams are the resolvers that the tests put behind our server. BIND sets CD, whether it validates or not: "dnssec
// signed" is what an operator gives who has one there.
var downstreams = []struct {
	name string
	run  func(t *testing.T, upstream string) string
}{
	{"dnsmasq", func(t *testing.T, upstream string) string { return dnsmasq.run(t, upstream, "") }},
	{"unbound", func(t *testing.T, upstream string) string { return unbound.run(t, upstream, "") }},
	{"BIND", func(t *testing.T, upstream string) string { return bind.run(t, upstream, "") }},
	{"a rotating cache", runRotator},
}

const site = `
	www.example.org. 120 IN A 203.0.113.1
	www.example.org. 120 IN A 203.0.113.2
	www.example.org. 120 IN AAAA 2001:db8:1::1
	www.example.org. 120 IN HTTPS 1 . alpn=h2,h3 ipv4hint=203.0.113.1
	www.example.org. 300 IN MX 10 mail.example.org.
	other.example.com. 120 IN A 203.0.113.9
	other.example.com. 120 IN AAAA 2001:db8:9::9`

const siteOnCDN = `
	www.example.org. 300 IN CNAME web.example.net.
	web.example.net. 120 IN A 203.0.113.1
	web.example.net. 120 IN AAAA 2001:db8:1::1`

func TestClientsBehindAnotherResolverGetAWorkingAnswer(t *testing.T) {
	for _, d := range downstreams {
		t.Run(d.name, func(t *testing.T) {
			o := startOrigin(t, site)
			s := start(t, "longhaul {\nproxy "+proxy+"\nmatch example.org\ndnssec signed\n}\ncache\nforward . "+o.addr)
			addr := d.run(t, s.addr)
			for i := range 12 { // the first answers it from us, the others from its cache
				m := ask(t, addr, "www.example.org.", dns.TypeA)
				got := addresses(m)
				slices.Sort(got)
				if m.Rcode != dns.RcodeSuccess || !slices.Equal(got, []string{proxy, "203.0.113.1", "203.0.113.2"}) {
					t.Fatalf("Query %d for A gets %s", i, m)
				}
				for _, rr := range m.Answer {
					if ttl := rr.Header().Ttl; ttl == 0 || ttl > 120 {
						t.Errorf("Query %d for A gets a TTL of %d", i, ttl)
					}
				}
				for _, qtype := range []uint16{dns.TypeAAAA, dns.TypeHTTPS} {
					m := ask(t, addr, "www.example.org.", qtype)
					if m.Rcode != dns.RcodeSuccess || slices.ContainsFunc(m.Answer, func(rr dns.RR) bool { return rr.Header().Rrtype == qtype }) {
						t.Errorf("Query %d for %s gets %s", i, dns.TypeToString[qtype], m)
					}
				}
			}
			if m := ask(t, addr, "www.example.org.", dns.TypeMX); len(m.Answer) != 1 {
				t.Errorf("MX gets %s", m)
			}
			if m := ask(t, addr, "other.example.com.", dns.TypeA); !slices.Equal(addresses(m), []string{"203.0.113.9"}) {
				t.Errorf("A name that is not listed gets %s", m)
			}
			if m := ask(t, addr, "other.example.com.", dns.TypeAAAA); len(m.Answer) != 1 {
				t.Errorf("AAAA of a name that is not listed gets %s", m)
			}
			// Negative answers were cached, too: with their SOA they can be.
			if n := o.queries(dns.TypeAAAA); n != 2 {
				t.Errorf("The origin was asked %d times for two AAAA", n)
			}
		})
	}
}

func TestBINDSetsCDAndGetsTheTruthByDefault(t *testing.T) {
	for _, p := range []peer{unbound, bind, dnsmasq} {
		t.Run(p.name, func(t *testing.T) {
			o := startOrigin(t, site)
			s := start(t, "longhaul {\nproxy "+proxy+"\nmatch example.org\n}\nforward . "+o.addr)
			got := addresses(ask(t, p.run(t, s.addr, ""), "www.example.org.", dns.TypeA))
			if steered := slices.Contains(got, proxy); steered != (p.name != "BIND") {
				t.Errorf("A gets %v", got)
			}
		})
	}
}

// TestForwardersThatBelieveRecordsAfterACNAME is the reason for flatten: unbound and BIND send a query for the target of
// a CNAME, and that name is not listed.
func TestForwardersThatBelieveRecordsAfterACNAME(t *testing.T) {
	asksAgain := map[string]bool{"unbound": true, "BIND": true}
	for _, d := range downstreams {
		t.Run(d.name, func(t *testing.T) {
			o := startOrigin(t, siteOnCDN)
			config := "longhaul {\nproxy " + proxy + "\nmatch example.org\ndnssec signed\n%s\n}\nforward . " + o.addr
			chain, flat := start(t, fmt.Sprintf(config, "")), start(t, fmt.Sprintf(config, "flatten"))
			got := addresses(ask(t, d.run(t, chain.addr), "www.example.org.", dns.TypeA))
			if steered := slices.Contains(got, proxy); steered == asksAgain[d.name] || !slices.Contains(got, "203.0.113.1") {
				t.Errorf("With its chain A gets %v", got)
			}
			flatAddr := d.run(t, flat.addr)
			for range 3 {
				if got := addresses(ask(t, flatAddr, "www.example.org.", dns.TypeA)); len(got) != 2 || !slices.Contains(got, proxy) {
					t.Errorf("Without its chain A gets %v", got)
				}
				if m := ask(t, flatAddr, "www.example.org.", dns.TypeAAAA); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 0 {
					t.Errorf("Without its chain AAAA gets %s", m)
				}
			}
		})
	}
}

func TestReplacedAnswersHoldTheProxyOnlyWhateverRotates(t *testing.T) {
	for _, d := range downstreams {
		t.Run(d.name, func(t *testing.T) {
			o := startOrigin(t, site)
			s := start(t, "longhaul {\nproxy "+proxy+"\nmatch example.org\nmode replace\ndnssec signed\n}\nforward . "+o.addr)
			addr := d.run(t, s.addr)
			for range 10 {
				if m := ask(t, addr, "www.example.org.", dns.TypeA); !slices.Equal(addresses(m), []string{proxy}) {
					t.Fatalf("A gets %s", m)
				}
			}
		})
	}
}

// TestForwardersThatKeepTheProxyFirst records the forwarders that rotate addresses. Behind those, the proxy is the first
// address in some of the responses only. The test fails when a forwarder changes its default.
func TestForwardersThatKeepTheProxyFirst(t *testing.T) {
	rotates := map[string]bool{"dnsmasq": true, "unbound": true, "BIND": true, "a rotating cache": true}
	for _, d := range downstreams {
		t.Run(d.name, func(t *testing.T) {
			o := startOrigin(t, site)
			s := start(t, "longhaul {\nproxy "+proxy+"\nmatch example.org\ndnssec signed\n}\nforward . "+o.addr)
			addr := d.run(t, s.addr)
			first := 0
			const queries = 60
			for range queries {
				if addresses(ask(t, addr, "www.example.org.", dns.TypeA))[0] == proxy {
					first++
				}
			}
			if first == 0 || first < queries != rotates[d.name] {
				t.Errorf("The proxy was first in %d of %d answers", first, queries)
			}
		})
	}
}

// TestSplitTTLsLoseTheFallbackAndOneTTLDoesNot is why answers have one TTL. The paper gave the proxy's record a day and left
// the origin's its own.
func TestSplitTTLsLoseTheFallbackAndOneTTLDoesNot(t *testing.T) {
	const short = "www.example.org. 2 IN A 203.0.113.1"
	for _, d := range downstreams {
		t.Run(d.name, func(t *testing.T) {
			o := startOrigin(t, short)
			one := start(t, "longhaul {\nproxy "+proxy+"\nmatch example.org\nttl 2s\ndnssec signed\n}\nforward . "+o.addr)
			splitAddr, oneAddr := d.run(t, serve(t, splitTTLs{one.addr})), d.run(t, one.addr)
			for _, addr := range []string{splitAddr, oneAddr} {
				if got := addresses(ask(t, addr, "www.example.org.", dns.TypeA)); len(got) != 2 {
					t.Fatalf("The first answer is %v", got)
				}
			}
			kept := ttlOf(ask(t, splitAddr, "www.example.org.", dns.TypeA), proxy)
			// What the resolver makes of a day beside two seconds.
			if want := map[string]bool{"dnsmasq": true, "unbound": true}[d.name]; kept > 3600 != want {
				t.Errorf("The proxy's record has a TTL of %d", kept)
			}
			time.Sleep(2500 * time.Millisecond) // the origin's TTL passes
			lost := len(addresses(ask(t, splitAddr, "www.example.org.", dns.TypeA))) < 2
			if want := d.name == "dnsmasq"; lost != want {
				t.Errorf("With split TTLs the origin's address was lost: %v", lost)
			}
			if got := addresses(ask(t, oneAddr, "www.example.org.", dns.TypeA)); len(got) != 2 {
				t.Errorf("With one TTL the answer became %v", got)
			}
		})
	}
}

// splitTTLs is a server that gives the TTLs of the paper of 2004. Its upstream gives every record the origin's TTL.
type splitTTLs struct{ upstream string }

func (s splitTTLs) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	m, _, err := new(dns.Client).Exchange(r, s.upstream)
	if err != nil {
		m = new(dns.Msg).SetRcode(r, dns.RcodeServerFailure)
	}
	for _, rr := range m.Answer {
		if a, ok := rr.(*dns.A); ok && a.A.String() == proxy {
			a.Hdr.Ttl = 24 * 60 * 60
		}
	}
	_ = w.WriteMsg(m)
}

func ttlOf(m *dns.Msg, addr string) uint32 {
	for _, rr := range m.Answer {
		if a, ok := rr.(*dns.A); ok && a.A.String() == addr {
			return a.Hdr.Ttl
		}
	}
	return 0
}

func TestARebindGuardDropsAnswersWithAPrivateProxy(t *testing.T) {
	o := startOrigin(t, site)
	guarded := dnsmasq
	plain := guarded.start
	guarded.start = func(dir string, port int, upstream *net.UDPAddr, anchor string) (string, []string) {
		config, args := plain(dir, port, upstream, anchor)
		return config, append(args, "--stop-dns-rebind")
	}
	private := start(t, "longhaul {\nproxy 10.9.8.7\nmatch example.org\nmode replace\n}\nforward . "+o.addr)
	// Of the addresses set aside for tests only these do not count as private with dnsmasq.
	public := start(t, "longhaul {\nproxy 198.18.0.1\nmatch example.org\nmode replace\n}\nforward . "+o.addr)
	if m := ask(t, guarded.run(t, private.addr, ""), "www.example.org.", dns.TypeA); len(addresses(m)) != 0 {
		t.Errorf("With a private proxy address A gets %s", m)
	}
	if m := ask(t, guarded.run(t, public.addr, ""), "www.example.org.", dns.TypeA); len(addresses(m)) != 1 {
		t.Errorf("With a public proxy address A gets %s", m)
	}
}

func TestAValidatingResolverGetsTheTruthOfSignedNames(t *testing.T) {
	zone, anchor := signedZone(t, "signed.example.", `
		www.signed.example. 300 IN A 203.0.113.1
		www.signed.example. 300 IN AAAA 2001:db8:1::1`)
	o := startOrigin(t, zone+site)
	match := "longhaul {\nproxy " + proxy + "\nmatch signed.example example.org\n%s\n}\nforward . " + o.addr
	skip, broken := start(t, fmt.Sprintf(match, "")), start(t, fmt.Sprintf(match, "dnssec break"))

	addr := unbound.run(t, skip.addr, anchor)
	r := new(dns.Msg).SetQuestion("www.signed.example.", dns.TypeA)
	r.AuthenticatedData = true
	if m := query(t, addr, r); m.Rcode != dns.RcodeSuccess || !m.AuthenticatedData || !slices.Equal(addresses(m), []string{"203.0.113.1"}) {
		t.Errorf("A signed name gets %s", m)
	}
	if m := ask(t, addr, "www.signed.example.", dns.TypeAAAA); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 1 {
		t.Errorf("AAAA of a signed name gets %s", m)
	}
	if m := ask(t, addr, "www.example.org.", dns.TypeA); m.Rcode != dns.RcodeSuccess || len(addresses(m)) != 3 {
		t.Errorf("An unsigned name gets %s", m)
	}
	// The price of dnssec break, and why it is no default.
	if m := ask(t, unbound.run(t, broken.addr, anchor), "www.signed.example.", dns.TypeA); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("With dnssec break a signed name gets %s", m)
	}
}

// signedZone signs records below zone and returns them with their signatures and keys, and the zone's DS record.
func signedZone(t *testing.T, zone, text string) (signed, ds string) {
	t.Helper()
	key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 300},
		Flags: dns.ZONE | dns.SEP, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	private, err := key.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	sets := [][]dns.RR{{key}}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			rr, err := dns.NewRR(line)
			if err != nil {
				t.Fatal(err)
			}
			sets = append(sets, []dns.RR{rr}) // each record of the tests is a set of its own
		}
	}
	var b strings.Builder
	for _, set := range sets {
		sig := &dns.RRSIG{Algorithm: key.Algorithm, KeyTag: key.KeyTag(), SignerName: zone,
			Inception: uint32(time.Now().Add(-time.Hour).Unix()), Expiration: uint32(time.Now().Add(time.Hour).Unix())}
		if err := sig.Sign(private.(crypto.Signer), set); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n%s\n", set[0], sig)
	}
	return b.String(), strings.ReplaceAll(key.ToDS(dns.SHA256).String(), "\t", " ")
}
