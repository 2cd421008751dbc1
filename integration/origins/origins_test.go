package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"image"
	_ "image/jpeg"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// bed is a running site of two hosts, each on its own loopback address.
type bed struct {
	t           *testing.T
	dns         string
	http, https uint16
	log         string
	folder      string
	roots       *x509.CertPool
}

const (
	wwwAddress = "127.77.1.1"
	imgAddress = "127.77.1.2"
	oneAddress = "127.77.1.4"
	twoAddress = "127.77.1.5"
)

func startBed(t *testing.T) *bed {
	t.Helper()
	folder := t.TempDir()
	b := &bed{t: t, folder: folder, log: filepath.Join(folder, "log"), roots: x509.NewCertPool()}
	b.writeCA()
	if err := os.WriteFile(filepath.Join(folder, "index.html"), []byte("<!doctype html>\n<title>Ω</title>"+strings.Repeat("<p>text</p>", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	ports := freePorts(t, 3)
	b.http, b.https, b.dns = ports[0], ports[1], fmt.Sprintf("127.77.1.3:%d", ports[2])
	manifest := fmt.Sprintf(`{
		"dns": [%q], "http_port": %d, "https_port": %d, "http3_port": %[3]d, "ca": {"cert": "ca.pem", "key": "ca.key"},
		"hosts": {
			"www.page.test": {"address": %[4]q, "root": ".", "special": true, "aaaa": "2001:db8::1", "https_record": true},
			"img.page.test": {"address": %[5]q, "generate": true, "header": {"X-Of-Host": "yes"}, "objects": {
				"/with space.php?a=ü|b": {"kind": "jpeg", "bytes": 5000, "header": {"X-Kind": "listed"}},
				"/packed.js": {"kind": "script", "transfer_bytes": 29000}, "/packed.jpg": {"kind": "jpeg", "transfer_bytes": 9000},
				"/plain.js": {"kind": "script", "bytes": 12000, "plain": true}}},
			"one.shared.test": {"address": %[6]q, "generate": true, "certificate": ["shared.test", "*.shared.test"], "misdirected": 404},
			"two.shared.test": {"address": %[7]q, "generate": true, "certificate": ["shared.test", "*.shared.test"]}
		},
		"records": {"pep.page.test": ["198.51.100.12", "198.51.100.13"]}
	}`, b.dns, b.http, b.https, wwwAddress, imgAddress, oneAddress, twoAddress)
	path := filepath.Join(folder, "site.json")
	if err := os.WriteFile(path, []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	site, err := LoadSite(path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := OpenLog(b.log)
	if err != nil {
		t.Fatal(err)
	}
	servers, err := Start(site, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { servers.Stop(); log.Close() })
	return b
}

func (b *bed) writeCA() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		b.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		b.t.Fatal(err)
	}
	b.roots.AddCert(certificate)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		b.t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"ca.pem": {Type: "CERTIFICATE", Bytes: der}, "ca.key": {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(filepath.Join(b.folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

// freePorts are different ports on which nothing listens at any address, neither UDP nor TCP. They are not in the range
// from which the kernel picks ports: a client's connection to a bed comes from the same address and may get such a port
// before the bed listens on it.
func freePorts(t *testing.T, count int) []uint16 {
	t.Helper()
	var ephemeral int
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err != nil {
		t.Fatal(err)
	} else if _, err := fmt.Sscan(string(text), &ephemeral); err != nil {
		t.Fatal(err)
	}
	const lowest = 10_000
	var free []uint16
	for range 50 {
		port := uint16(lowest + mathrand.IntN(ephemeral-lowest))
		if !slices.Contains(free, port) && isFree(port) {
			free = append(free, port)
		}
		if len(free) == count {
			return free
		}
	}
	t.Fatalf("found no %d free ports below %d", count, ephemeral)
	return nil
}

func isFree(port uint16) bool {
	everywhere := fmt.Sprintf("0.0.0.0:%d", port)
	tcp, err := net.Listen("tcp", everywhere)
	if err != nil {
		return false
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", everywhere)
	if err != nil {
		return false
	}
	return udp.Close() == nil
}

// fetch requests target of host at an address, over http or https. The caller handles compression.
func (b *bed) fetch(scheme, address, host, target string, header ...string) (*http.Response, []byte, error) {
	b.t.Helper()
	port := b.http
	if scheme == "https" {
		port = b.https
	}
	transport := &http.Transport{
		DisableCompression: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: b.roots, ServerName: host},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", address, port))
		},
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodGet, scheme+"://"+host+target, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response, text, err
}

func (b *bed) mustFetch(scheme, address, host, target string, header ...string) (*http.Response, []byte) {
	b.t.Helper()
	response, text, err := b.fetch(scheme, address, host, target, header...)
	if err != nil {
		b.t.Fatal(err)
	}
	return response, text
}

func (b *bed) query(name string, kind uint16) *dns.Msg {
	b.t.Helper()
	message := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
	answer, _, err := new(dns.Client).Exchange(message, b.dns)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

func (b *bed) events(kind string) []Event {
	b.t.Helper()
	file, err := os.Open(b.log)
	if err != nil {
		b.t.Fatal(err)
	}
	defer file.Close()
	var events []Event
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var event Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			b.t.Fatal(err)
		}
		if event.Event == kind {
			events = append(events, event)
		}
	}
	return events
}

func TestANameHasItsAddressAndWhatItDoesNotHaveComesWithSOA(t *testing.T) {
	b := startBed(t)
	if a := b.query("WWW.page.test", dns.TypeA); len(a.Answer) != 1 || a.Answer[0].(*dns.A).A.String() != wwwAddress {
		t.Errorf("A: %v", a)
	}
	if records := b.query("pep.page.test", dns.TypeA); len(records.Answer) != 2 {
		t.Errorf("further records: %v", records)
	}
	if aaaa := b.query("www.page.test", dns.TypeAAAA); len(aaaa.Answer) != 1 {
		t.Errorf("AAAA of a host that has one: %v", aaaa)
	}
	if https := b.query("www.page.test", dns.TypeHTTPS); len(https.Answer) != 1 {
		t.Errorf("HTTPS of a host that has one: %v", https)
	}
	for _, kind := range []uint16{dns.TypeAAAA, dns.TypeHTTPS, dns.TypeTXT} {
		none := b.query("img.page.test", kind)
		if none.Rcode != dns.RcodeSuccess || len(none.Answer) != 0 || len(none.Ns) != 1 || none.Ns[0].Header().Rrtype != dns.TypeSOA {
			t.Errorf("type %d of a host that has none: %v", kind, none)
		}
	}
	if unknown := b.query("nobody.test", dns.TypeA); unknown.Rcode != dns.RcodeNameError || len(unknown.Ns) != 1 {
		t.Errorf("a name nobody has: %v", unknown)
	}
	if root := b.query(".", dns.TypeNS); root.Rcode != dns.RcodeNameError || len(root.Ns) != 1 {
		t.Errorf("the root, which health checks ask for: %v", root)
	}
	if queries := b.events("query"); len(queries) != 9 || queries[0].Name != "www.page.test" || queries[0].Type != "A" {
		t.Errorf("queries in the log: %v", queries)
	}
}

func TestAHostAnswersAtItsOwnAddressOnly(t *testing.T) {
	b := startBed(t)
	if response, text := b.mustFetch("http", wwwAddress, "www.page.test", "/"); response.StatusCode != 200 || !bytes.Contains(text, []byte("Ω")) {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	if response, _ := b.mustFetch("http", imgAddress, "www.page.test", "/"); response.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("the wrong address responded with %d", response.StatusCode)
	}
	requests := b.events("request")
	if len(requests) != 2 || requests[0].Host != "www.page.test" || !strings.HasPrefix(requests[1].Local, imgAddress) {
		t.Errorf("requests in the log: %v", requests)
	}
	if connects := b.events("connect"); len(connects) != 2 {
		t.Errorf("connections in the log: %v", connects)
	}
}

func TestAListedObjectIsFoundHoweverItsURLIsEscaped(t *testing.T) {
	b := startBed(t)
	response, text := b.mustFetch("http", imgAddress, "img.page.test", "/with%20space.php?a=%C3%BC%7Cb")
	if len(text) != 5000 || response.Header.Get("X-Kind") != "listed" || response.Header.Get("X-Of-Host") != "yes" {
		t.Errorf("%d bytes, header %v", len(text), response.Header)
	}
	if _, _, err := image.Decode(bytes.NewReader(text)); err != nil {
		t.Error(err)
	}
	if response, _ := b.mustFetch("http", imgAddress, "img.page.test", "/other.css"); response.Header.Get("Content-Type") != "text/css" {
		t.Errorf("an unlisted object was not generated: %v", response.Header)
	}
	if response, _ := b.mustFetch("http", wwwAddress, "www.page.test", "/other.css"); response.StatusCode != http.StatusNotFound {
		t.Errorf("a host without generate responded with %d", response.StatusCode)
	}
}

func TestHTTPSSpeaksHTTP2WithACertificateOfTheName(t *testing.T) {
	b := startBed(t)
	response, _ := b.mustFetch("https", imgAddress, "img.page.test", "/a.png")
	if response.ProtoMajor != 2 {
		t.Errorf("spoke %s", response.Proto)
	}
	if names := response.TLS.PeerCertificates[0].DNSNames; len(names) != 1 || names[0] != "img.page.test" {
		t.Errorf("certificate for %v", names)
	}
	if _, _, err := b.fetch("https", imgAddress, "nobody.test", "/"); err == nil {
		t.Error("a name that is not served got a certificate")
	}
}

func TestHostsMayShareACertificateAndHideThatANameIsMisdirected(t *testing.T) {
	b := startBed(t)
	one, _ := b.mustFetch("https", oneAddress, "one.shared.test", "/a.png")
	two, _ := b.mustFetch("https", twoAddress, "two.shared.test", "/a.png")
	if one.StatusCode != 200 || two.StatusCode != 200 || !one.TLS.PeerCertificates[0].Equal(two.TLS.PeerCertificates[0]) {
		t.Errorf("%d and %d, or two certificates", one.StatusCode, two.StatusCode)
	}
	if err := one.TLS.PeerCertificates[0].VerifyHostname("two.shared.test"); err != nil {
		t.Error(err)
	}
	for address, status := range map[string]int{oneAddress: http.StatusNotFound, twoAddress: http.StatusMisdirectedRequest} {
		if response, _ := b.mustFetch("http", address, "www.page.test", "/"); response.StatusCode != status {
			t.Errorf("%s responded to a name of another address with %d", address, response.StatusCode)
		}
	}
}

func TestHTTP3IsSpokenAndAnnouncedOverTLSAlone(t *testing.T) {
	b := startBed(t)
	plain, _ := b.mustFetch("http", imgAddress, "img.page.test", "/a.png")
	secure, body := b.mustFetch("https", imgAddress, "img.page.test", "/a.png")
	want := fmt.Sprintf(`h3=":%d"; ma=86400`, b.https)
	if got := secure.Header.Get("Alt-Svc"); got != want || plain.Header.Get("Alt-Svc") != "" {
		t.Errorf("announced %q over TLS and %q without", got, plain.Header.Get("Alt-Svc"))
	}
	transport := &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: b.roots},
		Dial: func(ctx context.Context, _ string, config *tls.Config, more *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, fmt.Sprintf("%s:%d", imgAddress, b.https), config, more)
		},
	}
	defer transport.Close()
	response, err := (&http.Client{Transport: transport}).Get("https://img.page.test/a.png")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	same, err := io.ReadAll(response.Body)
	if err != nil || response.ProtoMajor != 3 || !bytes.Equal(same, body) {
		t.Errorf("%s: %d bytes instead of %d, %v", response.Proto, len(same), len(body), err)
	}
}

func TestRangesConditionsAndCodingsAreAnsweredAsServersDo(t *testing.T) {
	b := startBed(t)
	whole, text := b.mustFetch("http", wwwAddress, "www.page.test", "/")
	part, piece := b.mustFetch("http", wwwAddress, "www.page.test", "/", "Range: bytes=2-5", "Accept-Encoding: gzip")
	if part.StatusCode != 206 || !bytes.Equal(piece, text[2:6]) || part.Header.Get("Content-Encoding") != "" {
		t.Errorf("range: %d %q", part.StatusCode, piece)
	}
	if same, _ := b.mustFetch("http", wwwAddress, "www.page.test", "/", "If-None-Match: "+whole.Header.Get("ETag")); same.StatusCode != 304 {
		t.Errorf("condition: %d", same.StatusCode)
	}
	zipped, raw := b.mustFetch("http", wwwAddress, "www.page.test", "/", "Accept-Encoding: gzip, br;q=0")
	reader, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil || zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("coding: %v %v", err, zipped.Header)
	}
	if unzipped, _ := io.ReadAll(reader); !bytes.Equal(unzipped, text) {
		t.Error("gzip gave other bytes")
	}
	if zipped.Header.Get("ETag") == whole.Header.Get("ETag") {
		t.Error("two codings share a strong validator")
	}
}

func TestATextWeighsWhatIsSaidOnceItIsCompressedAndAPictureAsItIs(t *testing.T) {
	b := startBed(t)
	for target, wanted := range map[string]int{"/packed.js": 29000, "/packed.jpg": 9000} {
		_, raw := b.mustFetch("http", imgAddress, "img.page.test", target, "Accept-Encoding: br")
		if off := float64(len(raw))/float64(wanted) - 1; off < -0.02 || off > 0.02 {
			t.Errorf("%s: %d bytes crossed the network, wanted %d", target, len(raw), wanted)
		}
	}
}

func TestAServerOfLongAgoDoesNotCompress(t *testing.T) {
	b := startBed(t)
	plain, raw := b.mustFetch("http", imgAddress, "img.page.test", "/plain.js", "Accept-Encoding: br, gzip")
	if plain.Header.Get("Content-Encoding") != "" || len(raw) != 12000 {
		t.Errorf("plain: %d bytes, %v", len(raw), plain.Header)
	}
	packed, _ := b.mustFetch("http", imgAddress, "img.page.test", "/packed.js", "Accept-Encoding: br, gzip")
	if packed.Header.Get("Content-Encoding") != "br" {
		t.Errorf("packed: %v", packed.Header)
	}
}

func TestAnAnswerIsMadeToOrder(t *testing.T) {
	b := startBed(t)
	ask := func(query string) (*http.Response, []byte, error) {
		return b.fetch("http", wwwAddress, "www.page.test", "/_/answer?"+query)
	}
	if lie, text, err := ask("declare=gzip&host=img.page.test"); err != nil || lie.Header.Get("Content-Encoding") != "gzip" || !bytes.HasPrefix(text, []byte("<!doctype")) {
		t.Errorf("lie: %v %q", err, text)
	}
	if short, text, err := ask("size=5000&cut=1000"); err == nil || short.ContentLength != 5000 || len(text) != 1000 {
		t.Errorf("cut: error %v, %d bytes", err, len(text))
	}
	if odd, _, _ := ask("status=404&type=text/html%3Bcharset=utf-16&header=Set-Cookie:a%3Db&header=Set-Cookie:c%3Dd"); odd.StatusCode != 404 || len(odd.Header["Set-Cookie"]) != 2 || odd.Header.Get("Content-Type") != "text/html;charset=utf-16" {
		t.Errorf("status, type, headers: %v", odd)
	}
	if bare, _, _ := ask("type=none"); bare.Header["Content-Type"] != nil {
		t.Errorf("no type: %v", bare.Header)
	}
	began := time.Now()
	if _, text, err := ask("size=40&chunk=10&pause=20"); err != nil || len(text) != 40 || time.Since(began) < 60*time.Millisecond {
		t.Errorf("slow: %v, %d bytes after %v", err, len(text), time.Since(began))
	}
	if opened, _, err := b.fetch("http", wwwAddress, "www.page.test", "/_/open?gate=ready"); err != nil || opened.StatusCode != http.StatusNoContent {
		t.Errorf("opening a gate: %v %v", opened, err)
	}
	if _, text, err := ask("size=40&chunk=20&until=ready&gate=ready"); err != nil || len(text) != 40 {
		t.Errorf("through a gate: %v, %d bytes", err, len(text))
	}
	began = time.Now()
	if _, text, err := ask("size=40&wait=60"); err != nil || len(text) != 40 || time.Since(began) < 60*time.Millisecond {
		t.Errorf("waiting: %d bytes after %v, %v", len(text), time.Since(began), err)
	}
	if wrong, _, _ := ask("sise=40"); wrong.StatusCode != http.StatusBadRequest {
		t.Errorf("a misspelt key got %d", wrong.StatusCode)
	}
}

func TestAManifestWithAnUnknownKeyOrKindIsRefused(t *testing.T) {
	for _, text := range []string{
		`{"prots": 1}`,
		`{"hosts": {"a.test": {"address": "nowhere"}}}`,
		`{"hosts": {"A.test": {"address": "127.0.0.1"}}}`,
		`{"hosts": {"a.test": {"address": "127.0.0.1", "objects": {"/": {"kind": "hologram"}}}}}`,
		`{"hosts": {"a.test": {"address": "127.0.0.1", "misdirected": 404}, "b.test": {"address": "127.0.0.1", "misdirected": 421}}}`,
		`{"https_port": 1}`,
	} {
		path := filepath.Join(t.TempDir(), "site.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadSite(path); err == nil {
			t.Errorf("accepted: %s", text)
		}
	}
}
