package apart

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	mostCertificates = 2 * mostShared
	// mostNames bounds the names of one certificate that are kept. One with more counts as unread: few have above 100.
	mostNames      = 1000
	readersAtOnce  = 4
	readersWaiting = 256
	readTimeout    = 10 * time.Second
	tlsPort        = 443

	// A server may get another certificate at any time. Most change it every 60 to 90 days.
	knownFor = 24 * time.Hour
	// A server without TLS may get it.
	absentFor = 10 * time.Minute
	failedFor = time.Minute
	// A server that failed this often in a row has no TLS. Once may be a lost packet or a full link.
	failures = 3
)

// Read returns the names in the certificate that a server at one of these addresses shows for name. No names and no error: it
// does not speak TLS.
type Read func(ctx context.Context, name string, at []netip.Addr) ([]string, error)

// certificate is what the certificate of a server covers.
type certificate struct {
	exact map[string]bool
	below map[string]bool // the parents of wildcards
}

func newCertificate(names []string) *certificate {
	c := &certificate{exact: map[string]bool{}, below: map[string]bool{}}
	for _, name := range names {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if parent, wild := strings.CutPrefix(name, "*."); wild {
			c.below[parent] = true
		} else {
			c.exact[name] = true
		}
	}
	return c
}

// covers reports whether a browser accepts the certificate for name (RFC 9525 section 6.3): a wildcard stands for one label.
func (c *certificate) covers(name string) bool {
	_, parent, _ := strings.Cut(name, ".")
	return c.exact[name] || c.below[parent]
}

// certificates reads the certificates of names, and remembers them.
type certificates struct {
	read    Read
	waiting chan reading

	mu    sync.Mutex
	found map[string]*entry
	heard time.Time // a server has responded
}

type entry struct {
	certificate *certificate // nil: not known
	until       time.Time    // read again after it
	pending     bool
	failed      int       // attempts in a row
	failing     time.Time // since then
}

type reading struct {
	name string
	at   []netip.Addr
}

func newCertificates(read Read) *certificates {
	return &certificates{read: read, waiting: make(chan reading, readersWaiting), found: map[string]*entry{}}
}

// start runs the readers until ctx ends.
func (c *certificates) start(ctx context.Context, running *sync.WaitGroup) {
	for range readersAtOnce {
		running.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case next := <-c.waiting:
					c.take(ctx, next)
				}
			}
		})
	}
}

func (c *certificates) take(ctx context.Context, next reading) {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	names, err := c.read(limited, next.name, next.at)
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.found[next.name]
	if e == nil {
		return
	}
	now := time.Now()
	e.pending = false
	if err == nil {
		e.failed, c.heard = 0, now
	} else if e.failed++; e.failed == 1 {
		e.failing = now
	}
	// Where no server has responded in the meantime, the network has failed, and this says nothing about the server.
	absent := e.failed >= failures && c.heard.After(e.failing)
	switch {
	case err != nil && !absent || len(names) > mostNames:
		e.until = now.Add(failedFor) // an earlier certificate stays
	case len(names) == 0:
		e.certificate, e.until = newCertificate(nil), now.Add(absentFor)
	default:
		e.certificate, e.until = newCertificate(names), now.Add(knownFor)
	}
}

// known returns the certificate of a name, nil if it has not been read.
func (c *certificates) known(name string) *certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.found[name]; e != nil {
		return e.certificate
	}
	return nil
}

// of returns the certificate of a name, nil if it has not been read. It has it read if that is due.
func (c *certificates) of(name string, at []netip.Addr, now time.Time) *certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.found[name]
	if e == nil {
		if len(c.found) >= mostCertificates && !c.forget(now) {
			return nil
		}
		e = &entry{}
		c.found[name] = e
	}
	if !e.pending && !now.Before(e.until) {
		select {
		case c.waiting <- reading{name, append([]netip.Addr(nil), at...)}:
			e.pending = true
		default: // the next query tries again
		}
	}
	return e.certificate
}

// forget removes certificates that are due, and reports whether there is room.
func (c *certificates) forget(now time.Time) bool {
	for name, e := range c.found {
		if !e.pending && !now.Before(e.until) {
			delete(c.found, name)
		}
	}
	return len(c.found) < mostCertificates
}

// errNoTLS: the server refuses connections, or does not speak TLS.
var errNoTLS = errors.New("no TLS")

// ReadFromOrigin is the Read that connects to the server. It trusts any certificate: browsers verify the one that they get, and
// here only its names count.
func ReadFromOrigin(ctx context.Context, name string, at []netip.Addr) ([]string, error) {
	var last error
	for _, addr := range at[:min(len(at), 2)] {
		names, err := handshake(ctx, name, netip.AddrPortFrom(addr, tlsPort))
		if err == nil {
			return names, nil
		}
		last = err
	}
	if errors.Is(last, errNoTLS) {
		return nil, nil
	}
	return nil, last
}

func handshake(ctx context.Context, name string, at netip.AddrPort) ([]string, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", at.String())
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			err = errNoTLS
		}
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	client := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err := client.HandshakeContext(ctx); err != nil {
		var other tls.RecordHeaderError
		if errors.As(err, &other) {
			return nil, errNoTLS
		}
		return nil, err
	}
	return client.ConnectionState().PeerCertificates[0].DNSNames, nil
}
