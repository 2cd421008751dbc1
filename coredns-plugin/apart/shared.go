package apart

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// mostShared bounds the names at the proxy's own addresses, at about a kilobyte each.
	mostShared = 4096
	// A decision holds for this long. Certificates change, and names without a place get one when others are gone.
	placedFor  = 10 * time.Minute
	refusedFor = time.Minute
)

// shared places names at the proxy's own addresses, which are the same for every name.
type shared struct {
	certificates *certificates

	mu      sync.Mutex
	tenants map[string]*tenant
}

// tenant is a name that has asked for a place.
type tenant struct {
	server Server
	reason Reason    // why it has no place
	judged time.Time // the decision holds until then
	until  time.Time // some client may use the place until then
}

func newShared(certificates *certificates) *shared {
	return &shared{certificates: certificates, tenants: map[string]*tenant{}}
}

// place decides about a name with this server. The first name has its place at once. Each further server waits until the
// certificates are known.
func (s *shared) place(name string, server Server, origins []netip.Addr, now, until time.Time) Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	has, ok := s.tenants[name]
	if ok && has.server == server && now.Before(has.judged) {
		if has.until.Before(until) {
			has.until = until
		}
		return has.reason
	}
	certificate := s.certificates.of(name, origins, now)
	reason := s.judge(name, server, certificate, now)
	holds := placedFor
	switch {
	case reason == Unread: // the next query may find it read
		return reason
	case reason != 0:
		holds = refusedFor
	}
	if !ok && len(s.tenants) >= mostShared {
		s.forget(now)
	}
	if !ok && len(s.tenants) >= mostShared {
		return Crowded
	}
	s.tenants[name] = &tenant{server: server, reason: reason, judged: now.Add(holds), until: until}
	return reason
}

// judge compares a name with those that have a place and another server.
func (s *shared) judge(name string, server Server, certificate *certificate, now time.Time) Reason {
	alone, waits := true, certificate == nil
	for other, has := range s.tenants {
		if other == name || has.reason != 0 || has.server == server || !now.Before(has.until) {
			continue
		}
		alone = false
		theirs := s.certificates.known(other)
		if certificate != nil && certificate.covers(other) || theirs != nil && theirs.covers(name) {
			return Covered
		}
		waits = waits || theirs == nil
	}
	if waits && !alone {
		return Unread
	}
	return 0
}

// forget removes names that no client uses any more.
func (s *shared) forget(now time.Time) {
	for name, has := range s.tenants {
		if !now.Before(has.until) {
			delete(s.tenants, name)
		}
	}
}
