package longhaul

import (
	"context"
	"slices"
	"sync"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	clog "github.com/coredns/coredns/plugin/pkg/log"
)

var log = clog.NewWithPlugin(pluginName)

func init() { plugin.Register(pluginName, setup) }

func setup(c *caddy.Controller) error {
	l, err := parse(c)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	// Before the server starts, so that a list that cannot be used refuses the Corefile and what runs goes on running.
	if err := l.lists.load(); err != nil {
		return plugin.Error(pluginName, err)
	}
	warnOfOrder(dnsserver.Directives)

	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	c.OnStartup(func() error {
		l.lists.start(ctx, &running)
		l.bypass.start(ctx, &running)
		l.proxy.start(ctx, &running)
		l.table.Start(ctx, &running)
		if l.instant != nil {
			l.instant.start(ctx, &running)
		}
		if l.firstVisits != nil {
			return l.firstVisits.start(ctx, &running)
		}
		return nil
	})
	c.OnShutdown(func() error {
		stop()
		running.Wait()
		return nil
	})

	c.OnFinalShutdown(mappings.close)

	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		l.Next = next
		return l
	})
	return nil
}

// warnOfOrder says when this CoreDNS was built with the plugin in a place where it cannot keep its promises: loadbalance
// after us shuffles the proxy away from the first place, and a cache before us serves answers from before a list changed.
func warnOfOrder(directives []string) {
	we := slices.Index(directives, pluginName)
	for _, after := range []string{"loadbalance", "cache"} {
		if i := slices.Index(directives, after); i >= 0 && i < we {
			log.Warningf("This CoreDNS was built with %s before %s; it belongs after it", after, pluginName)
		}
	}
}
