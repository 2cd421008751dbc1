package withhold

import (
	"net/netip"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
)

func init() { plugin.Register(pluginName, setup) }

func setup(c *caddy.Controller) error {
	h, err := parse(c)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		h.Next = next
		return h
	})
	return nil
}

// parse reads this syntax:
//
//	withhold CIDR... {
//	    except CIDR...
//	}
func parse(c *caddy.Controller) (*Withhold, error) {
	h := &Withhold{}
	for i := 0; c.Next(); i++ {
		if i > 0 {
			return nil, plugin.ErrOnce
		}
		if err := prefixes(c, &h.refused); err != nil {
			return nil, err
		}
		for c.NextBlock() {
			if c.Val() != "except" {
				return nil, c.Errf("unknown property '%s', expected except", c.Val())
			}
			if err := prefixes(c, &h.allowed); err != nil {
				return nil, err
			}
		}
	}
	return h, nil
}

// prefixes reads the ranges in the rest of the line and appends them to list.
func prefixes(c *caddy.Controller, list *[]netip.Prefix) error {
	args := c.RemainingArgs()
	if len(args) == 0 {
		return c.ArgErr()
	}
	for _, arg := range args {
		p, err := netip.ParsePrefix(arg)
		if err != nil {
			return c.Errf("'%s' is not a range of addresses, expected one such as 192.0.2.0/24", arg)
		}
		*list = append(*list, p.Masked())
	}
	return nil
}
