package encrypted

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	clog "github.com/coredns/coredns/plugin/pkg/log"
)

var log = clog.NewWithPlugin(pluginName)

// lookEvery is how often the files of a certificate are looked at, while clients come.
const lookEvery = time.Second

// store has the certificates of the servers.
type store struct {
	mu      sync.Mutex
	entries []*entry
}

// entry is a certificate with the names for which it is used.
type entry struct {
	cert, key string
	names     []string // lower case, with a final dot

	looked  time.Time
	seen    [2]version
	current *tls.Certificate // nil until both files can be used
	refused string           // the reason why the files on disk are not in use; empty if they are
}

// version distinguishes the contents that a file had over time.
type version struct {
	modified time.Time
	size     int64
}

func versionOf(path string) version {
	info, err := os.Stat(path)
	if err != nil {
		return version{}
	}
	return version{info.ModTime(), info.Size()}
}

// look reads the files again if they changed. While they cannot be used, such as between the writes of an ACME client,
// the certificate from before stays in use.
func (e *entry) look(now time.Time) {
	if since := now.Sub(e.looked); since >= 0 && since < lookEvery && !e.looked.IsZero() {
		return
	}
	e.looked = now
	seen := [2]version{versionOf(e.cert), versionOf(e.key)}
	if seen == e.seen && e.refused == "" && e.current != nil {
		return
	}
	read, err := tls.LoadX509KeyPair(e.cert, e.key)
	if err != nil {
		if e.refused != err.Error() {
			e.refused = err.Error()
			log.Warningf("Certificate %s cannot be used: %v", e.cert, err)
		}
		return
	}
	e.current, e.seen, e.refused = &read, seen, ""
}

// looked at and usable entries, in the order of the Corefile.
func (s *store) usable(now time.Time) []*entry {
	var usable []*entry
	for _, e := range s.entries {
		if e.look(now); e.current != nil {
			usable = append(usable, e)
		}
	}
	return usable
}

// certificate chooses the certificate for a connection: that of the server name. A client that has only an address sends no
// name, and gets the one that covers the address, or else the first. An ended one is served, too: the client decides.
func (s *store) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	usable := s.usable(clock())
	if len(usable) == 0 {
		return nil, errors.New("no certificate")
	}
	if name := strings.ToLower(hello.ServerName); name != "" {
		for _, e := range usable {
			if e.has(name + ".") {
				return e.current, nil
			}
		}
	} else if hello.Conn != nil {
		address, _, err := net.SplitHostPort(hello.Conn.LocalAddr().String())
		for _, e := range usable {
			if err == nil && e.current.Leaf.VerifyHostname(address) == nil {
				return e.current, nil
			}
		}
	}
	return usable[0].current, nil
}

func (e *entry) has(name string) bool {
	for _, own := range e.names {
		if own == name {
			return true
		}
	}
	return false
}

// named is a name that clients can verify now.
type named struct {
	name string
	left time.Duration // until its certificate ends
}

// verifiable returns the names whose certificates are valid.
func (s *store) verifiable() []named {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	var found []named
	for _, e := range s.usable(now) {
		leaf := e.current.Leaf
		if now.Before(leaf.NotBefore) || !now.Before(leaf.NotAfter) {
			continue
		}
		for _, name := range e.names {
			if covers(leaf, name) {
				found = append(found, named{name, leaf.NotAfter.Sub(now)})
			}
		}
	}
	return found
}

func covers(leaf *x509.Certificate, name string) bool {
	return leaf.VerifyHostname(strings.TrimSuffix(name, ".")) == nil
}
