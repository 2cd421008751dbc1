package longhaul

import (
	"net/netip"
	"time"

	"example.org/longhaul/coredns-plugin/apart"
	"example.org/longhaul/coredns-plugin/steer"
)

// readCertificates is another function in tests, whose servers are made up.
var readCertificates apart.Read = apart.ReadFromOrigin

// unplaced says why a name has no address of the proxy.
var unplaced = map[apart.Reason]steer.Verdict{
	apart.Unread:  steer.LeftUnread,
	apart.Covered: steer.LeftCovered,
	apart.Crowded: steer.LeftCrowded,
}

// placement gives names the addresses of a table.
func placement(table *apart.Table) steer.Placement {
	return func(name string, origins, proxies []netip.Addr, ttl uint32) ([]netip.Addr, steer.Verdict) {
		addr, reason := table.Place(name, origins, time.Duration(ttl)*time.Second)
		switch {
		case reason != 0:
			return nil, unplaced[reason]
		case addr.IsValid():
			return []netip.Addr{addr}, 0
		}
		return proxies, 0
	}
}
