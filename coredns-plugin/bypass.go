package longhaul

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// bypass knows the sources that always get the true answer. The proxy is among them whatever is configured: an answer that
// led it to itself would loop.
type bypass struct {
	configured []netip.Prefix // and the proxy's addresses
	proxies    []netip.Addr
	local      atomic.Pointer[[]netip.Addr] // the addresses of this host, while the proxy runs on it; nil or empty otherwise
}

// How often the addresses of this host are read again: they change when a link comes up.
const localInterval = 30 * time.Second

// newBypass adds the proxy's own addresses to the configured sources. Loopback addresses are left out: who asks from one is
// somebody on this host, and a proxy whose own queries come from there has to be named by hand.
func newBypass(configured []netip.Prefix, proxies *addresses) *bypass {
	b := &bypass{configured: slices.Clone(configured)}
	for _, addr := range slices.Concat(proxies.v4, proxies.v6) {
		if !addr.IsLoopback() {
			b.proxies = append(b.proxies, addr)
			b.configured = append(b.configured, netip.PrefixFrom(addr, addr.BitLen()))
		}
	}
	return b
}

func (b *bypass) has(source netip.Addr) bool {
	if containsIn(b.configured, source) {
		return true
	}
	local := b.local.Load()
	return local != nil && contains(*local, source)
}

// start reads the addresses of this host, and again from time to time until ctx ends.
func (b *bypass) start(ctx context.Context, done *sync.WaitGroup) {
	b.readLocal()
	done.Go(func() { every(ctx, localInterval, b.readLocal) })
}

// readLocal takes this host's addresses over if one of them is the proxy's: its queries may leave by any of them.
func (b *bypass) readLocal() {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		log.Warningf("Cannot read the addresses of this host: %v", err)
		return
	}
	var local []netip.Addr
	proxyIsHere := false
	for _, i := range interfaces {
		ipnet, ok := i.(*net.IPNet)
		if !ok {
			continue
		}
		addr, ok := netip.AddrFromSlice(ipnet.IP)
		if addr = addr.Unmap(); !ok || addr.IsLoopback() {
			continue
		}
		local = append(local, addr)
		proxyIsHere = proxyIsHere || contains(b.proxies, addr)
	}
	if !proxyIsHere {
		local = nil
	}
	b.local.Store(&local)
}
