package push

import (
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	clog "github.com/coredns/coredns/plugin/pkg/log"
)

var log = clog.NewWithPlugin(pluginName)

// defaultSize bounds what is learned: about 60,000 names with ten followers each.
const defaultSize = 24 << 20

func init() { plugin.Register(pluginName, setup) }

type options struct {
	socket, file string
	size         int
	ahead        int
}

// hubs are those of this process, by their sockets.
var hubs = struct {
	sync.Mutex
	known map[string]*hub
}{known: map[string]*hub{}}

func setup(c *caddy.Controller) error {
	o, err := parse(c)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	p := &Push{}
	c.OnStartup(func() error {
		if err := p.start(o); err != nil {
			// Lookups are served all the same.
			log.Errorf("No name is sent before it is asked: %s", err)
		}
		return nil
	})
	c.OnShutdown(p.stop)
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		p.Next = next
		return p
	})
	return nil
}

// start takes the hub of an earlier Corefile, or makes it.
func (p *Push) start(o options) error {
	hubs.Lock()
	defer hubs.Unlock()
	h := hubs.known[o.socket]
	if h == nil {
		h = newHub(o.socket, o.file, o.size, time.Now)
		h.load(o.size)
		listener, err := listen(o.socket)
		if err != nil {
			return err
		}
		h.server = serve(h, listener)
		hubs.known[o.socket] = h
	}
	h.rate.Store(int64(o.ahead))
	p.hub = h
	h.handler.Store(p)
	return nil
}

// stop ends the hub, unless a later Corefile has it.
func (p *Push) stop() error {
	hubs.Lock()
	defer hubs.Unlock()
	if p.hub == nil || !p.hub.handler.CompareAndSwap(p, nil) {
		return nil
	}
	delete(hubs.known, p.hub.socket)
	p.hub.server.close()
	p.hub.save()
	return nil
}

// parse reads this syntax:
//
//	push SOCKET FILE {
//	    size BYTES
//	    ahead BYTES_A_SECOND
//	}
func parse(c *caddy.Controller) (options, error) {
	o := options{size: defaultSize}
	for i := 0; c.Next(); i++ {
		if i > 0 {
			return o, plugin.ErrOnce
		}
		args := c.RemainingArgs()
		if len(args) != 2 {
			return o, c.ArgErr()
		}
		o.socket, o.file = args[0], args[1]
		if root := dnsserver.GetConfig(c).Root; !filepath.IsAbs(o.file) && root != "" {
			o.file = filepath.Join(root, o.file)
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
	number, err := strconv.Atoi(args[0])
	switch name {
	case "size":
		if err != nil || number < 1<<16 || number > 1<<30 {
			return c.Errf("'%s' is not a size, expected bytes from %d to %d", args[0], 1<<16, 1<<30)
		}
		o.size = number
	case "ahead":
		if err != nil || number < 0 || number > 1<<20 {
			return c.Errf("'%s' is not a rate, expected bytes a second from 0 to %d", args[0], 1<<20)
		}
		o.ahead = number
	default:
		return c.Errf("unknown property '%s', expected size or ahead", name)
	}
	return nil
}
