package lookups

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var ways = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace,
	Subsystem: pluginName,
	Name:      "responses_total",
	Help:      "Counter of responses, by the way on which they came: a stream, or a connection of the plugins behind.",
}, []string{"way"})

var retries = promauto.NewCounterVec(prometheus.CounterOpts{
	Namespace: plugin.Namespace,
	Subsystem: pluginName,
	Name:      "retries_total",
	Help:      "Counter of queries that were sent again because their stream or connection was reset, by the way.",
}, []string{"way"})

const (
	defaultHedge  = 2 * time.Second
	defaultAtOnce = 128
)

func init() { plugin.Register(pluginName, setup) }

func setup(c *caddy.Controller) error {
	h, address, err := parse(c)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	streams := newStreams(address)
	h.streams = streams
	ctx, stop := context.WithCancel(context.Background())
	h.stopped = ctx
	c.OnShutdown(func() error {
		stop()
		h.probes.Wait()
		streams.close()
		return nil
	})
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		h.Next = next
		return h
	})
	return nil
}

// parse reads this syntax:
//
//	lookups ADDRESS:PORT {
//	    hedge DURATION
//	    at_once COUNT
//	}
func parse(c *caddy.Controller) (h *Lookups, address string, err error) {
	h = &Lookups{hedge: defaultHedge, slots: make(chan struct{}, defaultAtOnce), now: time.Now, stopped: context.Background()}
	for i := 0; c.Next(); i++ {
		if i > 0 {
			return nil, "", plugin.ErrOnce
		}
		args := c.RemainingArgs()
		if len(args) != 1 {
			return nil, "", c.ArgErr()
		}
		address = args[0]
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, "", c.Errf("'%s' is not an address and a port", address)
		}
		for c.NextBlock() {
			if err := property(c, h); err != nil {
				return nil, "", err
			}
		}
	}
	return h, address, nil
}

func property(c *caddy.Controller, h *Lookups) error {
	name := c.Val()
	args := c.RemainingArgs()
	if len(args) != 1 {
		return c.ArgErr()
	}
	switch name {
	case "hedge":
		hedge, err := time.ParseDuration(args[0])
		if err != nil || hedge <= 0 || hedge > time.Minute {
			return c.Errf("'%s' is not a time, expected one up to 1m", args[0])
		}
		h.hedge = hedge
	case "at_once":
		count, err := strconv.Atoi(args[0])
		if err != nil || count < 1 || count > 10_000 {
			return c.Errf("'%s' is not a count, expected one from 1 to 10000", args[0])
		}
		h.slots = make(chan struct{}, count)
	default:
		return c.Errf("unknown property '%s', expected hedge or at_once", name)
	}
	return nil
}
