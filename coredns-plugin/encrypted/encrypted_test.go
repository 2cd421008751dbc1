package encrypted_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"

	_ "example.org/longhaul/coredns-plugin/slim"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

func init() { caddy.Quiet, dnsserver.Quiet = true, true }

// issue writes a certificate that signs itself, and returns its files.
func issue(t *testing.T, dir, file string, serial int64, ends time.Time, names ...string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: ends.Add(-90 * 24 * time.Hour), NotAfter: ends, DNSNames: names,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	if file != "first" {
		template.IPAddresses = nil
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, file+".pem"), filepath.Join(dir, file+".key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// box is a CoreDNS in this process with all four servers.
type box struct {
	t                       *testing.T
	dir                     string
	plain, tls, https, quic string
	instance                *caddy.Instance
}

func start(t *testing.T, ends time.Time) *box {
	t.Helper()
	b := &box{t: t, dir: t.TempDir()}
	issue(t, b.dir, "first", 1, ends, "pep.example.net", "other.example.net")
	issue(t, b.dir, "second", 2, ends, "two.example.net")
	for attempt := 1; ; attempt++ {
		for _, addr := range []*string{&b.plain, &b.tls, &b.https} {
			socket, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			*addr = socket.Addr().String()
			_ = socket.Close()
		}
		b.quic = b.tls
		instance, err := caddy.Start(b.corefile(1232))
		if err == nil {
			b.instance = instance
			break
		}
		if attempt == 5 {
			t.Fatal(err)
		}
	}
	// A server that is stopped before it serves goes on beside its successor.
	for _, transport := range []string{"tcp", "tls", "https"} {
		_, err := b.ask(transport, "127.0.0.1", "pep.example.net", new(dns.Msg).SetQuestion(".", dns.TypeNS))
		if err != nil && time.Now().Before(ends) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = b.instance.Stop()
		for _, err := range b.instance.ShutdownCallbacks() {
			t.Error(err)
		}
	})
	return b
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

func (b *box) corefile(bufsize int) caddy.Input {
	return caddy.CaddyfileInput{Filepath: "Corefile", ServerTypeName: "dns", Contents: fmt.Appendf(nil, `
.:%s tls://.:%s https://.:%s {
    bind 127.0.0.1
    encrypted {
        certificate %[4]s/first.pem %[4]s/first.key pep.example.net not-covered.example.net
        certificate %[4]s/second.pem %[4]s/second.key two.example.net
        address 192.0.2.1 2001:db8::1
        tls %[2]s
        quic %[2]s
        https %[3]s
    }
    bufsize %[5]d
    any
    acl {
        block net 127.0.0.2/32
    }
    template IN A www.example.org {
        answer "{{ .Name }} 60 IN A 198.51.100.12"
        answer "{{ .Name }} 60 IN A 198.51.100.13"
    }
    template IN TXT big.example.org {
        answer "{{ .Name }} 60 IN TXT %[6]s"
    }
    template IN ANY gone.example.org {
        rcode NXDOMAIN
        authority "example.org 60 IN SOA ns.invalid. nobody.invalid. 1 3600 600 86400 300"
    }
    template IN ANY resolver.arpa {
        authority "resolver.arpa 60 IN SOA ns.invalid. nobody.invalid. 1 3600 600 86400 300"
    }
}
`, portOf(b.plain), portOf(b.tls), portOf(b.https), b.dir, bufsize, strings.Repeat(strings.Repeat("x", 250)+" ", 16))}
}

// trusting is a client's configuration that believes the certificates.
func (b *box) trusting(name string) *tls.Config {
	pool := x509.NewCertPool()
	for _, file := range []string{"first", "second"} {
		text, err := os.ReadFile(filepath.Join(b.dir, file+".pem"))
		if err != nil {
			b.t.Fatal(err)
		}
		pool.AppendCertsFromPEM(text)
	}
	return &tls.Config{RootCAs: pool, ServerName: name}
}

// ask sends a query over a transport from an address, and returns the response and the serial of the certificate.
func (b *box) ask(transport, from, server string, query *dns.Msg) (*dns.Msg, error) {
	local := net.ParseIP(from)
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: local}, Timeout: 5 * time.Second}
	switch transport {
	case "tcp":
		m, _, err := (&dns.Client{Net: "tcp", Dialer: dialer}).Exchange(query, b.plain)
		return m, err
	case "tls":
		m, _, err := (&dns.Client{Net: "tcp-tls", Dialer: dialer, TLSConfig: b.trusting(server)}).Exchange(query, b.tls)
		return m, err
	case "https":
		wire, err := query.Pack()
		if err != nil {
			return nil, err
		}
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
			ForceAttemptHTTP2: true, TLSClientConfig: b.trusting(server), DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, b.https)
			},
		}}
		got, err := client.Post("https://"+server+"/dns-query", "application/dns-message", bytes.NewReader(wire))
		if err != nil {
			return nil, err
		}
		defer func() { _ = got.Body.Close() }()
		if got.ProtoMajor != 2 {
			return nil, errors.New(got.Proto)
		}
		body, err := io.ReadAll(got.Body)
		if err != nil {
			return nil, err
		}
		m := new(dns.Msg)
		return m, m.Unpack(body)
	default:
		conn, err := b.connect(from, server)
		if err != nil {
			return nil, err
		}
		defer func() { _ = conn.CloseWithError(0, "") }()
		return askQUIC(conn, query)
	}
}

func (b *box) connect(from, server string) (*quic.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(from)})
	if err != nil {
		return nil, err
	}
	b.t.Cleanup(func() { _ = socket.Close() })
	to, err := net.ResolveUDPAddr("udp", b.quic)
	if err != nil {
		return nil, err
	}
	config := b.trusting(server)
	config.NextProtos = []string{"doq"}
	return quic.Dial(ctx, socket, to, config, nil)
}

func askQUIC(conn *quic.Conn, query *dns.Msg) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	query = query.Copy()
	query.Id = 0
	wire, err := query.Pack()
	if err != nil {
		return nil, err
	}
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	_ = stream.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := stream.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...)); err != nil {
		return nil, err
	}
	_ = stream.Close()
	got, err := io.ReadAll(stream)
	if err != nil || len(got) < 2 {
		return nil, fmt.Errorf("%d bytes: %w", len(got), err)
	}
	m := new(dns.Msg)
	return m, m.Unpack(got[2:])
}

// meaning is a response without its number and padding.
func meaning(m *dns.Msg) string {
	m = m.Copy()
	m.Id = 0
	if opt := m.IsEdns0(); opt != nil {
		opt.Option = nil
	}
	return m.String()
}

var encrypted = []string{"tls", "https", "quic"}

func TestAnswersAreThoseOfThePlainPortForEveryClient(t *testing.T) {
	b := start(t, time.Now().Add(24*time.Hour))
	for _, question := range []struct {
		name  string
		qtype uint16
	}{
		{"www.example.org.", dns.TypeA},
		{"WWW.example.org.", dns.TypeA},
		{"www.example.org.", dns.TypeANY},
		{"big.example.org.", dns.TypeTXT},
		{"gone.example.org.", dns.TypeAAAA},
		{"unserved.example.net.", dns.TypeA},
		{"_dns.resolver.arpa.", dns.TypeSVCB},
		{"_dns.resolver.arpa.", dns.TypeA},
	} {
		for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
			for _, edns := range []bool{false, true} {
				query := new(dns.Msg).SetQuestion(question.name, question.qtype)
				if edns {
					query.SetEdns0(1232, true)
				}
				want, err := b.ask("tcp", from, "", query)
				if err != nil {
					t.Fatal(err)
				}
				for _, transport := range encrypted {
					got, err := b.ask(transport, from, "pep.example.net", query)
					if err != nil {
						t.Errorf("%s, %v: %v", transport, question, err)
					} else if meaning(got) != meaning(want) {
						t.Errorf("%s from %s: %s\nwant %s", transport, from, meaning(got), meaning(want))
					}
				}
			}
		}
	}
}

func TestResponsesHideTheirLengthFromThoseWhoAskedSo(t *testing.T) {
	b := start(t, time.Now().Add(24*time.Hour))
	for _, transport := range append([]string{"tcp"}, encrypted...) {
		for name, qtype := range map[string]uint16{
			"www.example.org.": dns.TypeA, "gone.example.org.": dns.TypeTXT, "big.example.org.": dns.TypeTXT,
		} {
			query := new(dns.Msg).SetQuestion(name, qtype)
			query.SetEdns0(1232, false)
			opt := query.IsEdns0()
			opt.Option = append(opt.Option, &dns.EDNS0_PADDING{Padding: make([]byte, 30)})
			got, err := b.ask(transport, "127.0.0.1", "pep.example.net", query)
			if err != nil {
				t.Fatal(err)
			}
			wire, err := got.Pack()
			if err != nil {
				t.Fatal(err)
			}
			if got.Compress = true; transport != "tcp" && len(wire)%468 != 0 {
				t.Errorf("%s: %s has %d bytes", transport, name, len(wire))
			} else if transport == "tcp" && len(wire)%468 == 0 {
				t.Errorf("%s over TCP is padded", name)
			}
		}
	}
}

func designation(t *testing.T, b *box, name string) []string {
	t.Helper()
	m, err := b.ask("tcp", "127.0.0.1", "", new(dns.Msg).SetQuestion(name, dns.TypeSVCB))
	if err != nil {
		t.Fatal(err)
	}
	var records []string
	for _, rr := range m.Answer {
		records = append(records, strings.ReplaceAll(rr.String(), "\t", " "))
	}
	return records
}

func TestClientsAreToldOfTheServersWhileACertificateIsValid(t *testing.T) {
	b := start(t, time.Now().Add(24*time.Hour))
	hints := `ipv4hint="192.0.2.1" ipv6hint="2001:db8::1"`
	of := func(owner, name string) []string {
		head := func(priority int) string { return fmt.Sprintf("%s 300 IN SVCB %d %s", owner, priority, name) }
		return []string{
			fmt.Sprintf(`%s alpn="dot" port="%s" %s`, head(1), portOf(b.tls), hints),
			fmt.Sprintf(`%s alpn="doq" port="%s" %s`, head(2), portOf(b.tls), hints),
			fmt.Sprintf(`%s alpn="h2" port="%s" %s dohpath="/dns-query{?dns}"`, head(3), portOf(b.https), hints),
		}
	}
	for owner, want := range map[string][]string{
		"_dns.resolver.arpa.":           of("_dns.resolver.arpa.", "pep.example.net."),
		"_DNS.Resolver.arpa.":           of("_DNS.Resolver.arpa.", "pep.example.net."),
		"_dns.pep.example.net.":         of("_dns.pep.example.net.", "pep.example.net."),
		"_dns.two.example.net.":         of("_dns.two.example.net.", "two.example.net."),
		"_dns.not-covered.example.net.": nil,
		"_dns.other.example.net.":       nil,
		"resolver.arpa.":                nil,
	} {
		if got := designation(t, b, owner); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", owner, got, want)
		}
	}
	ending := start(t, time.Now().Add(100*time.Second))
	if got := designation(t, ending, "_dns.resolver.arpa."); len(got) != 3 || strings.Contains(got[0], " 300 IN") {
		t.Errorf("Before the end of the certificate: %q", got)
	}
	// An ended one: clients are told nothing, and those that come see it.
	ended := start(t, time.Now().Add(-time.Second))
	if got := designation(t, ended, "_dns.resolver.arpa."); got != nil {
		t.Errorf("After the end of the certificate: %q", got)
	}
	query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	for _, transport := range encrypted {
		if _, err := ended.ask(transport, "127.0.0.1", "pep.example.net", query); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("%s: %v", transport, err)
		}
	}
}

// serial asks for the serial number of the certificate that a client with this server name gets.
func (b *box) serial(name string) int64 {
	b.t.Helper()
	conn, err := tls.Dial("tcp", b.tls, &tls.Config{ServerName: name, InsecureSkipVerify: true}) //nolint:gosec // the number is wanted
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func (b *box) await(what string, is func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatal(what)
		}
	}
}

func TestTheServerNameChoosesTheCertificateAndARenewedOneIsReadWithoutAReload(t *testing.T) {
	ends := time.Now().Add(24 * time.Hour)
	b := start(t, ends)
	for name, want := range map[string]int64{"pep.example.net": 1, "TWO.example.net": 2, "unknown.example.net": 1, "": 1} {
		if got := b.serial(name); got != want {
			t.Errorf("%q gets certificate %d, want %d", name, got, want)
		}
	}
	held, err := b.connect("127.0.0.1", "two.example.net")
	if err != nil {
		t.Fatal(err)
	}
	// The key comes later: until then, the certificate from before is in use.
	cert, key := issue(t, t.TempDir(), "second", 3, ends, "two.example.net")
	move := func(from, to string) {
		if err := os.Rename(from, filepath.Join(b.dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	move(cert, "second.pem")
	for until := time.Now().Add(1500 * time.Millisecond); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if got := b.serial("two.example.net"); got != 2 {
			t.Fatalf("Certificate %d is in use with the key of another", got)
		}
	}
	move(key, "second.key")
	b.await("The renewed certificate is not in use", func() bool { return b.serial("two.example.net") == 3 })
	if _, err := askQUIC(held, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)); err != nil {
		t.Errorf("A connection from before: %v", err)
	}
	if _, err := b.ask("quic", "127.0.0.1", "two.example.net", new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)); err != nil {
		t.Error(err)
	}
}

func TestAReloadLosesNoQueryOverQUIC(t *testing.T) {
	b := start(t, time.Now().Add(24*time.Hour))
	held, err := b.connect("127.0.0.1", "pep.example.net")
	if err != nil {
		t.Fatal(err)
	}
	query := new(dns.Msg).SetQuestion("big.example.org.", dns.TypeTXT)
	if _, err := askQUIC(held, query); err != nil {
		t.Fatal(err)
	}
	for _, bufsize := range []int{1231, 1230} {
		instance, err := b.instance.Restart(b.corefile(bufsize))
		if err != nil {
			t.Fatal(err)
		}
		b.instance = instance
		for range 20 {
			if _, err := b.ask("quic", "127.0.0.1", "pep.example.net", query); err != nil {
				t.Error(err)
			}
			if _, err := askQUIC(held, query); err != nil {
				t.Error(err)
			}
		}
	}
	// A file that is refused changes nothing.
	broken := b.corefile(1229).(caddy.CaddyfileInput)
	broken.Contents = append(broken.Contents, "example.org:70000 {\n}\n"...)
	if _, err := b.instance.Restart(broken); err == nil {
		t.Fatal("A port beyond 65535 is accepted")
	}
	if _, err := askQUIC(held, query); err != nil {
		t.Error(err)
	}
}

func TestAClientThatBreaksTheRulesOfQUICIsToldSo(t *testing.T) {
	b := start(t, time.Now().Add(24*time.Hour))
	numbered, err := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, sent := range [][]byte{
		append(binary.BigEndian.AppendUint16(nil, uint16(len(numbered))), numbered...), // its number is not 0
		{0, 5, 1}, {0}, {},
	} {
		conn, err := b.connect("127.0.0.1", "pep.example.net")
		if err != nil {
			t.Fatal(err)
		}
		stream, err := conn.OpenStreamSync(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = stream.Write(sent)
		_ = stream.Close()
		_ = stream.SetDeadline(time.Now().Add(5 * time.Second))
		_, err = io.ReadAll(stream)
		var closed *quic.ApplicationError
		if !errors.As(err, &closed) || closed.ErrorCode != 2 {
			t.Errorf("After % x: %v", sent, err)
		}
	}
}

func TestOneClientHoldsAShareOfTheConnections(t *testing.T) {
	b := start(t, time.Now().Add(24*time.Hour))
	query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	served := 0
	for range 40 {
		conn, err := b.connect("127.0.0.3", "pep.example.net")
		if err != nil {
			continue
		}
		if _, err := askQUIC(conn, query); err == nil {
			served++
		}
	}
	if served != 32 {
		t.Errorf("%d connections of one client are served, want 32", served)
	}
	if _, err := b.ask("quic", "127.0.0.1", "pep.example.net", query); err != nil {
		t.Errorf("Another client: %v", err)
	}
}

func TestUnusableCertificatesLeaveThePlainPort(t *testing.T) {
	b := start(t, time.Now().Add(24*time.Hour))
	for _, file := range []string{"first.pem", "second.key"} {
		if err := os.WriteFile(filepath.Join(b.dir, file), []byte("nothing"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	instance, err := b.instance.Restart(b.corefile(1231))
	if err != nil {
		t.Fatal(err)
	}
	b.instance = instance
	if got := designation(t, b, "_dns.resolver.arpa."); got != nil {
		t.Errorf("%q", got)
	}
	if _, err := tls.Dial("tcp", b.tls, &tls.Config{InsecureSkipVerify: true}); err == nil { //nolint:gosec // none is there
		t.Error("A handshake without a certificate succeeds")
	}
}

func TestWrongArguments(t *testing.T) {
	b := start(t, time.Now().Add(24*time.Hour))
	for _, wrong := range []string{
		"encrypted", "encrypted x {\ncertificate a b c\n}", "encrypted {\ncertificate a b\n}", "encrypted {\ncertificate a b c\ntls 0\n}",
		"encrypted {\ncertificate a b c\nquic 70000\n}", "encrypted {\ncertificate a b c\naddress x\n}", "encrypted {\ncertificate a b c\naddress\n}",
		"encrypted {\ncertificate a b c\nhttps\n}", "encrypted {\ncertificate a b c\nport 1\n}", "encrypted {\ncertificate a b c\n}\nencrypted {\ncertificate a b c\n}",
	} {
		input := caddy.CaddyfileInput{Filepath: "Corefile", ServerTypeName: "dns", Contents: fmt.Appendf(nil, ".:%s {\nbind 127.0.0.1\n%s\n}\n", portOf(b.plain), wrong)}
		if err := caddy.ValidateAndExecuteDirectives(input, nil, true); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
