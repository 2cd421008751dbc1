package remember

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"

	"example.org/longhaul/coredns-plugin/push/take"
)

const (
	defaultSpan = 7 * 24 * time.Hour
	// longestSpan keeps times within the range of the file.
	longestSpan = 365 * 24 * time.Hour
	defaultSize = 40 << 20
	// saveEvery bounds what a power cut loses.
	saveEvery = 5 * time.Minute
	// garbagePercent is GOGC of the process. By Go's default, a heap grows to twice of what is live, and the memory is the
	// most of it: 100,000 names take 32 MiB instead of 44.
	garbagePercent = 50
)

func init() { plugin.Register(pluginName, setup) }

type options struct {
	path string
	span time.Duration
	size int
	// pushed is the Unix socket by which the ground is asked to send responses unasked; empty: it is not.
	pushed string
}

func setup(c *caddy.Controller) error {
	o, err := parse(c)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	h := &Remember{span: o.span, now: time.Now, asking: map[string]*asking{}, refresher: newRefresher(time.Now), memory: open(o.path, o.size)}
	if o.pushed != "" {
		h.taker = take.New(o.pushed, h.memory.id, h.span, h.take, showStream)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	c.OnStartup(func() error {
		running.Go(func() { h.refresher.run(ctx) })
		running.Go(func() { h.memory.keep(ctx, saveEvery) })
		if h.taker != nil {
			running.Go(func() { h.taker.Run(ctx) })
		}
		return nil
	})
	c.OnShutdown(func() error {
		stop()
		running.Wait()
		return nil
	})
	// A reload keeps the memory, so only the end of the process saves and closes it.
	c.OnFinalShutdown(h.memory.close)
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		h.Next = next
		return h
	})
	return nil
}

// parse reads this syntax:
//
//	remember FILE {
//	    for DURATION
//	    size BYTES
//	    pushed SOCKET
//	}
func parse(c *caddy.Controller) (options, error) {
	o := options{span: defaultSpan, size: defaultSize}
	for i := 0; c.Next(); i++ {
		if i > 0 {
			return o, plugin.ErrOnce
		}
		args := c.RemainingArgs()
		if len(args) != 1 {
			return o, c.ArgErr()
		}
		o.path = args[0]
		if root := dnsserver.GetConfig(c).Root; !filepath.IsAbs(o.path) && root != "" {
			o.path = filepath.Join(root, o.path)
		}
		for c.NextBlock() {
			if err := property(c, &o); err != nil {
				return o, err
			}
		}
	}
	return o, nil
}

func property(c *caddy.Controller, o *options) error {
	name := c.Val()
	args := c.RemainingArgs()
	if len(args) != 1 {
		return c.ArgErr()
	}
	value := args[0]
	switch name {
	case "for":
		span, err := time.ParseDuration(value)
		if err != nil || span < time.Second || span > longestSpan {
			return c.Errf("'%s' is not a time, expected one from 1s to %s", value, longestSpan)
		}
		o.span = span
	case "size":
		size, err := strconv.Atoi(value)
		if err != nil || size < 1<<20 || size > 2<<30 {
			return c.Errf("'%s' is not a size, expected bytes from %d to %d", value, 1<<20, 2<<30)
		}
		o.size = size
	case "pushed":
		o.pushed = value
	default:
		return c.Errf("unknown property '%s', expected for, size or pushed", name)
	}
	return nil
}
