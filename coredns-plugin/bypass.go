package longhaul

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.org/longhaul/coredns-plugin/steer"
)

// bypass knows the sources that always get the true answer. The proxy is among them whatever is configured: an answer that
// led it to itself would loop.
type bypass struct {
	configured []netip.Prefix
	proxies    []netip.Addr                 // the proxy's addresses but for loopback ones
	local      atomic.Pointer[[]netip.Addr] // the addresses of this host, while the proxy runs on it; nil or empty otherwise
}

// How often the addresses of this host are read again: they change when a link comes up.
const localInterval = 30 * time.Second

// newBypass adds the proxy's own addresses to the configured sources. Loopback addresses are left out: who asks from one is
// somebody on this host, and a proxy whose own queries come from there has to be named by hand.
func newBypass(configured []netip.Prefix, proxies *steer.Addresses) *bypass {
	b := &bypass{configured: configured}
	for _, addr := range slices.Concat(proxies.V4, proxies.V6) {
		if !addr.IsLoopback() {
			b.proxies = append(b.proxies, addr)
		}
	}
	return b
}

// has reports whether source gets the truth.
func (b *bypass) has(source netip.Addr) bool {
	if slices.Contains(b.proxies, source) || b.hasAll(netip.PrefixFrom(source, source.BitLen())) {
		return true
	}
	local := b.local.Load()
	return local != nil && slices.Contains(*local, source)
}

// hasAll reports whether all clients in subnet get the truth. It looks only at what is configured by hand: the proxy does
// not hide in a subnet.
func (b *bypass) hasAll(subnet netip.Prefix) bool {
	return slices.ContainsFunc(b.configured, func(p netip.Prefix) bool {
		return p.Bits() <= subnet.Bits() && p.Contains(subnet.Addr())
	})
}

// dependsOnSubnet reports whether clients in different subnets may get different answers.
func (b *bypass) dependsOnSubnet() bool { return len(b.configured) > 0 }

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
		proxyIsHere = proxyIsHere || slices.Contains(b.proxies, addr)
	}
	if !proxyIsHere {
		local = nil
	}
	b.local.Store(&local)
}

// sourceOf returns the address a query came from. An IPv4 client on a dual-stack socket counts as what it is.
func sourceOf(remote net.Addr) netip.Addr {
	switch a := remote.(type) {
	case *net.UDPAddr:
		addr, _ := netip.AddrFromSlice(a.IP)
		return addr.Unmap()
	case *net.TCPAddr:
		addr, _ := netip.AddrFromSlice(a.IP)
		return addr.Unmap()
	}
	ap, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}
