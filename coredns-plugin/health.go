package longhaul

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"example.org/longhaul/coredns-plugin/steer"
)

// listener is one address and port at which the proxy accepts connections, and the proxy addresses it speaks for.
type listener struct {
	at    netip.AddrPort
	addrs []netip.Addr

	checked bool // its first check has been made
	up      bool
	fails   int // failed checks in a row
}

const (
	checkTimeout = time.Second
	// One failed check may have met a restart of the proxy, and each switch costs clients their warm connections.
	failsToStop = 2
)

// checkAll connects to all listeners at once and returns the addresses of those that are up.
func checkAll(ctx context.Context, all []*listener) *steer.Addresses {
	var wg sync.WaitGroup
	for _, l := range all {
		wg.Go(func() { l.check(ctx) })
	}
	wg.Wait()
	var good steer.Addresses
	for _, l := range all {
		if l.up {
			good.Add(l.addrs...)
		}
	}
	return &good
}

// check makes one connection and closes it. The first check decides at once, as does every good one; after that it takes
// failsToStop bad ones in a row.
func (l *listener) check(ctx context.Context) {
	dialer := net.Dialer{Timeout: checkTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", l.at.String())
	if ctx.Err() != nil {
		return
	}
	wasUp := l.up
	if err == nil {
		_ = conn.Close()
		l.up, l.fails = true, 0
	} else {
		healthcheckFailures.WithLabelValues(l.at.String()).Inc()
		l.fails++
		l.up = l.up && l.fails < failsToStop
	}
	if l.checked && wasUp != l.up || !l.checked && !l.up {
		if l.up {
			log.Infof("Proxy listener %s answers", l.at)
		} else {
			log.Warningf("Proxy listener %s does not answer: %v", l.at, err)
		}
	}
	l.checked = true
	proxyUp.WithLabelValues(l.at.String()).Set(oneIf(l.up))
}
