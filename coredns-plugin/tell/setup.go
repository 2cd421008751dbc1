package tell

import (
	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
)

func init() { plugin.Register(pluginName, setup) }

func setup(c *caddy.Controller) error {
	t, err := parse(c)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		t.Next = next
		return t
	})
	return nil
}

// parse reads this syntax:
//
//	tell [FILE [problems]]
func parse(c *caddy.Controller) (*Tell, error) {
	t := &Tell{}
	for i := 0; c.Next(); i++ {
		if i > 0 {
			return nil, plugin.ErrOnce
		}
		args := c.RemainingArgs()
		switch {
		case len(args) == 2 && args[1] == "problems":
			t.problems = true
			fallthrough
		case len(args) == 1:
			t.file = args[0]
		case len(args) != 0:
			return nil, c.ArgErr()
		}
	}
	return t, nil
}
