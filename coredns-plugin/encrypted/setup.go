package encrypted

import (
	"crypto/tls"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
)

func init() { plugin.Register(pluginName, setup) }

// The protocols of the servers, as ALPN names them.
const (
	overTLS   = "dot"
	overQUIC  = "doq"
	overHTTPS = "h2"
)

// protocols are the properties of the servers.
var protocols = map[string]string{"tls": overTLS, "quic": overQUIC, "https": overHTTPS}

func setup(c *caddy.Controller) error {
	e, err := parse(c)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	config := dnsserver.GetConfig(c)
	if config.TLSConfig != nil {
		return plugin.Error(pluginName, c.Err("tls has the certificates of this server block already"))
	}
	for _, one := range e.store.entries {
		for _, file := range []*string{&one.cert, &one.key} {
			if !filepath.IsAbs(*file) && config.Root != "" {
				*file = filepath.Join(config.Root, *file)
			}
		}
	}
	// The first message about a file that cannot be used is that of the start. The port of plain lookups serves anyway.
	e.store.usable(clock())
	config.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: e.store.certificate}
	config.AddPlugin(func(next plugin.Handler) plugin.Handler {
		e.Next = next
		return e
	})
	e.serveQUIC(c, config)
	return nil
}

// serveQUIC starts the servers of QUIC with those of CoreDNS, and hands them over at a reload.
func (e *Encrypted) serveQUIC(c *caddy.Controller, config *dnsserver.Config) {
	port := e.announced.portOf(overQUIC)
	if port == 0 {
		return
	}
	chains := map[string]*chain{}
	take := func() error {
		for addr, one := range chains {
			if err := serveQUIC(addr, one); err != nil {
				log.Errorf("No lookups over QUIC: %v", err) // the other servers are not less useful
			}
		}
		return nil
	}
	c.OnStartup(func() error {
		for _, host := range config.ListenHosts {
			addr := net.JoinHostPort(host, strconv.Itoa(int(port)))
			server, err := dnsserver.NewServer(transport.QUIC+"://"+addr, []*dnsserver.Config{config})
			if err != nil {
				return err
			}
			own := config.TLSConfig.Clone()
			own.MinVersion, own.NextProtos = tls.VersionTLS13, []string{overQUIC}
			chains[addr] = &chain{server, own}
		}
		return take()
	})
	c.OnRestartFailed(take)
	c.OnShutdown(func() error {
		for addr, one := range chains {
			stopQUIC(addr, one)
		}
		return nil
	})
}

// parse reads this syntax:
//
//	encrypted {
//	    certificate CERT KEY NAME...
//	    address ADDRESS...
//	    tls|quic|https PORT
//	}
func parse(c *caddy.Controller) (*Encrypted, error) {
	e := &Encrypted{store: &store{}}
	for i := 0; c.Next(); i++ {
		if i > 0 {
			return nil, plugin.ErrOnce
		}
		if len(c.RemainingArgs()) > 0 {
			return nil, c.ArgErr()
		}
		for c.NextBlock() {
			if err := e.property(c, c.Val(), c.RemainingArgs()); err != nil {
				return nil, err
			}
		}
	}
	if len(e.store.entries) == 0 {
		return nil, c.Err("no certificate")
	}
	return e, nil
}

func (e *Encrypted) property(c *caddy.Controller, property string, args []string) error {
	switch property {
	case "certificate":
		if len(args) < 3 {
			return c.ArgErr()
		}
		one := &entry{cert: args[0], key: args[1]}
		for _, name := range args[2:] {
			if _, ok := dns.IsDomainName(name); !ok {
				return c.Errf("'%s' is not a name", name)
			}
			one.names = append(one.names, strings.ToLower(dns.Fqdn(name)))
		}
		e.store.entries = append(e.store.entries, one)
	case "address":
		if len(args) == 0 {
			return c.ArgErr()
		}
		for _, arg := range args {
			ip := net.ParseIP(arg)
			switch {
			case ip == nil:
				return c.Errf("'%s' is not an address", arg)
			case ip.To4() != nil:
				e.announced.v4 = append(e.announced.v4, ip.To4())
			default:
				e.announced.v6 = append(e.announced.v6, ip)
			}
		}
	case "tls", "quic", "https":
		if len(args) != 1 {
			return c.ArgErr()
		}
		port, err := strconv.ParseUint(args[0], 10, 16)
		if err != nil || port == 0 {
			return c.Errf("'%s' is not a port", args[0])
		}
		e.announced.servers = append(e.announced.servers, server{protocols[property], uint16(port)})
	default:
		return c.Errf("unknown property '%s', expected certificate, address, tls, quic or https", property)
	}
	return nil
}
