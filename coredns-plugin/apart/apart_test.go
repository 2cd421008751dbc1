package apart

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	first  = addrs("203.0.113.1")
	second = addrs("203.0.113.2")
)

func addrs(text ...string) []netip.Addr {
	var out []netip.Addr
	for _, t := range text {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

func ranges(text ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, t := range text {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

// origins are servers by the names that they are asked for.
type origins map[string][]string

func (o origins) read(_ context.Context, name string, _ []netip.Addr) ([]string, error) {
	covers, ok := o[name]
	if !ok {
		return nil, errors.New("no route")
	}
	return covers, nil
}

// started returns a table without ranges whose certificates are read in a bubble of synctest.
func started(t *testing.T, read Read, r ...netip.Prefix) *Table {
	t.Helper()
	table := New(r, read)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	table.Start(ctx, &running)
	t.Cleanup(func() { stop(); running.Wait() })
	return table
}

func reason(table *Table, name string, at []netip.Addr) Reason {
	_, why := table.Place(name, at, time.Minute)
	return why
}

func TestServersOfARangeHaveAddressesOfTheirOwn(t *testing.T) {
	within := netip.MustParsePrefix("198.18.0.0/22")
	table := New([]netip.Prefix{within}, nil)
	given := map[netip.Addr]int{}
	for server := range 600 {
		at := addrs(fmt.Sprintf("203.0.113.%d", server%256), fmt.Sprintf("192.0.2.%d", server/256))
		got, why := table.Place(fmt.Sprintf("s%d.example.org.", server), at, time.Minute)
		if why != 0 {
			continue // the range is half full
		}
		if holder, held := given[got]; held {
			t.Fatalf("servers %d and %d are at %s", holder, server, got)
		}
		if !within.Contains(got) || got == within.Addr() || got == netip.MustParseAddr("198.18.3.255") {
			t.Fatalf("server %d is at %s", server, got)
		}
		given[got] = server
	}
	if len(given) < 590 {
		t.Errorf("%d of 600 servers have an address", len(given))
	}
	// Names of one server share its address, in whichever order its addresses come.
	one, _ := table.Place("a.example.org.", addrs("203.0.113.7", "203.0.113.8"), time.Minute)
	other, _ := table.Place("b.example.org.", addrs("203.0.113.8", "203.0.113.7", "203.0.113.8"), time.Minute)
	if one != other {
		t.Errorf("one server is at %s and %s", one, other)
	}
}

func TestARangeIsTheSameOnEveryBox(t *testing.T) {
	for _, r := range []string{"198.18.0.0/15", "2001:db8:1::/64"} {
		within := netip.MustParsePrefix(r)
		origin := first
		if within.Addr().Is6() {
			origin = addrs("2001:db8::1")
		}
		here, _ := New([]netip.Prefix{within}, nil).Place("a.example.org.", origin, time.Minute)
		there, _ := New([]netip.Prefix{within}, nil).Place("b.example.org.", origin, time.Hour)
		if here != there || !within.Contains(here) {
			t.Errorf("%s and %s of %s", here, there, r)
		}
	}
}

func TestAFullRangeTakesAnAddressOnlyWhenNoClientUsesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(ranges("198.18.0.0/30"), nil) // two addresses
		for _, origin := range [][]netip.Addr{first, second} {
			if why := reason(table, "a.example.org.", origin); why != 0 {
				t.Fatalf("%v: %d", origin, why)
			}
		}
		third := addrs("203.0.113.3")
		if why := reason(table, "c.example.org.", third); why != Crowded {
			t.Errorf("the third server of two addresses: %d", why)
		}
		time.Sleep(time.Minute + linger - time.Second)
		if why := reason(table, "c.example.org.", third); why != Crowded {
			t.Errorf("a browser may still use the addresses, but the third server: %d", why)
		}
		time.Sleep(2 * time.Second)
		if why := reason(table, "c.example.org.", third); why != 0 {
			t.Errorf("the third server, when the first are gone: %d", why)
		}
	})
}

func TestNamesOfARangeHaveAddressesOfTheirOwn(t *testing.T) {
	alone := NewAlone(netip.MustParsePrefix("198.18.0.0/15"))
	one, _ := alone.Place("one.example.org.", time.Minute)
	two, _ := alone.Place("two.example.org.", time.Minute)
	again, _ := alone.Place("ONE.example.org.", time.Minute)
	if one == two || one != again {
		t.Errorf("%s, %s, %s", one, two, again)
	}
}

func TestCertificatesDecideAboutOneAddress(t *testing.T) {
	wild := []string{"page.example", "*.page.example"}
	for _, tc := range []struct {
		name          string
		www, img      []string // the names in the certificates
		sameServer    bool
		before, after Reason // of the second name, before and after the certificates are read
	}{
		{name: "a wildcard covers both", www: wild, img: wild, before: Unread, after: Covered},
		{name: "a wildcard covers both, at one server", www: wild, img: wild, sameServer: true},
		{name: "each has its own", www: []string{"www.page.example"}, img: []string{"img.page.example"}, before: Unread},
		{name: "the first covers the second", www: []string{"IMG.page.example"}, img: []string{"img.page.example"}, before: Unread, after: Covered},
		{name: "the second covers the first", www: []string{"www.page.example"}, img: wild, before: Unread, after: Covered},
		{name: "a wildcard is for one label", www: []string{"*.example"}, img: []string{"*.b.page.example"}, before: Unread},
		{name: "no TLS", before: Unread},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := started(t, origins{"www.page.example": tc.www, "img.page.example": tc.img}.read)
				img := second
				if tc.sameServer {
					img = first
				}
				if why := reason(table, "www.page.example.", first); why != 0 {
					t.Fatalf("the first name: %d", why)
				}
				if why := reason(table, "img.page.example.", img); why != tc.before {
					t.Errorf("before the certificates are read: %d", why)
				}
				synctest.Wait()
				if why := reason(table, "img.page.example.", img); why != tc.after {
					t.Errorf("after the certificates are read: %d", why)
				}
				if why := reason(table, "WWW.page.example.", first); why != 0 {
					t.Errorf("the first name again: %d", why)
				}
			})
		})
	}
}

func TestAChangedCertificateTakesThePlaceAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := origins{"www.page.example": {"www.page.example"}, "img.page.example": {"img.page.example"}}
		table := started(t, servers.read)
		both := func() (Reason, Reason) {
			return reason(table, "www.page.example.", first), reason(table, "img.page.example.", second)
		}
		both()
		synctest.Wait()
		if www, img := both(); www != 0 || img != 0 {
			t.Fatalf("%d, %d", www, img)
		}
		servers["www.page.example"] = []string{"*.page.example"}
		time.Sleep(knownFor)
		both() // begins to read
		synctest.Wait()
		time.Sleep(placedFor)
		if www, img := both(); www != Covered || img != 0 {
			t.Errorf("the name with the wider certificate: %d, the other: %d", www, img)
		}
	})
}

func TestASilentServerHasNoTLSOnlyWhereOthersRespond(t *testing.T) {
	for _, othersRespond := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			servers := origins{"www.example.org": {"www.example.org"}}
			table := started(t, servers.read)
			reason(table, "www.example.org.", first)
			synctest.Wait()
			var why Reason
			for attempt := range 6 {
				if othersRespond && attempt == 2 {
					servers["third.example"] = []string{"third.example"}
					reason(table, "third.example.", first)
				}
				why = reason(table, "silent.example.", second)
				synctest.Wait()
				time.Sleep(failedFor)
			}
			if want := map[bool]Reason{true: 0, false: Unread}[othersRespond]; why != want {
				t.Errorf("others respond: %v, the silent one: %d", othersRespond, why)
			}
		})
	}
}

func TestTheNumberOfNamesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(nil, origins{}.read)
		for number := range mostShared + 10 {
			why := reason(table, fmt.Sprintf("n%d.example.org.", number), first)
			if want := number >= mostShared; (why == Crowded) != want || !want && why != 0 {
				t.Fatalf("name %d: %d", number, why)
			}
		}
		if found := len(table.one.certificates.found); found > mostCertificates {
			t.Errorf("%d certificates", found)
		}
		time.Sleep(time.Minute + linger)
		if why := reason(table, "late.example.org.", first); why != 0 {
			t.Errorf("a name after the others are gone: %d", why)
		}
	})
}

func TestTheNamesOfARealCertificateAreRead(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"page.example", "*.page.example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	server, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, listener := range []net.Listener{server, plain} {
		defer func() { _ = listener.Close() }()
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				if secure, ok := conn.(*tls.Conn); ok {
					_ = secure.Handshake()
				} else {
					_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				}
				_ = conn.Close()
			}
		}()
	}
	at := func(l net.Listener) netip.AddrPort { return netip.MustParseAddrPort(l.Addr().String()) }
	names, err := handshake(t.Context(), "www.page.example", at(server))
	if err != nil || !slices.Equal(names, template.DNSNames) {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := handshake(t.Context(), "www.page.example", at(plain)); !errors.Is(err, errNoTLS) {
		t.Errorf("a server without TLS: %v", err)
	}
	gone := at(plain)
	_ = plain.Close()
	if _, err := handshake(t.Context(), "www.page.example", gone); !errors.Is(err, errNoTLS) {
		t.Errorf("a refused connection: %v", err)
	}
}
