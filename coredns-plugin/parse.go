package longhaul

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"

	"example.org/longhaul/coredns-plugin/apart"
	"example.org/longhaul/coredns-plugin/names"
	"example.org/longhaul/coredns-plugin/steer"
)

const (
	defaultMaxOrigin  = 4
	defaultReload     = 5 * time.Second
	defaultMinTTL     = 60   // seconds
	defaultMaxTTL     = 3600 // seconds
	defaultReplaceTTL = 30   // seconds: how long a client that roams away stays without the site
	longestTTL        = 7 * 24 * time.Hour
	mostOrigins       = 64
)

// properties reads what stands in the plugin's block, by the first word of the line. Each may be given once, but for those
// in repeatable, which add up.
var properties = map[string]func(*config, *caddy.Controller, []string) error{
	"proxy":         (*config).parseProxy,
	"match":         (*config).parseMatch,
	"except":        (*config).parseExcept,
	"www":           flag(func(cfg *config) *bool { return &cfg.www }),
	"own":           (*config).parseOwn,
	"alpn":          (*config).parseALPN,
	"bypass":        prefixes(func(cfg *config) *[]netip.Prefix { return &cfg.bypass }),
	"allow_private": prefixes(func(cfg *config) *[]netip.Prefix { return &cfg.policy.AllowPrivate }),
	"mode":          (*config).parseMode,
	"flatten":       flag(func(cfg *config) *bool { return &cfg.policy.Flatten }),
	"max_origin":    (*config).parseMaxOrigin,
	"ttl":           (*config).parseTTL,
	"aaaa":          (*config).parseAAAA,
	"https":         (*config).parseHTTPS,
	"dnssec":        (*config).parseDNSSEC,
	"compare":       (*config).parseCompare,
	"canary":        flag(func(cfg *config) *bool { return &cfg.canary }),
	"instant":       rangeOf(func(cfg *config) *netip.Prefix { return &cfg.instant }),
	"browsers":      (*config).parseBrowsers,
	"intercepted":   flag(func(cfg *config) *bool { return &cfg.intercepted }),
	"health":        (*config).parseHealth,
	"pause":         (*config).parsePause,
	"reload":        (*config).parseReload,
}

var repeatable = []string{"proxy", "match", "except", "own", "bypass", "allow_private"}

// config is the block as written, while it is read.
type config struct {
	root   string // what relative file names start from
	policy steer.Policy
	seen   map[string]bool

	files   []*listFile
	match   *names.Builder
	except  *names.Builder
	own     *names.Builder
	alpn    []string
	bypass  []netip.Prefix
	compare share
	proxies []netip.Addr
	www     bool
	canary  bool
	instant netip.Prefix

	browsers       netip.Prefix
	browsersSocket string

	intercepted bool

	healthAt netip.AddrPort // without an address: this port of each proxy address
	interval time.Duration
	pause    string
	reload   time.Duration
}

func parse(c *caddy.Controller) (*Longhaul, error) {
	cfg := &config{
		root:   dnsserver.GetConfig(c).Root,
		policy: steer.Policy{MaxOrigin: defaultMaxOrigin},
		seen:   map[string]bool{},
		match:  names.NewBuilder(0), except: names.NewBuilder(0), own: names.NewBuilder(0),
		interval: defaultInterval,
		reload:   defaultReload,
	}
	blocks := 0
	for c.Next() {
		if blocks++; blocks > 1 {
			return nil, plugin.ErrOnce
		}
		for _, path := range c.RemainingArgs() {
			cfg.files = append(cfg.files, &listFile{path: cfg.path(path)})
		}
		for c.NextBlock() {
			name := c.Val()
			read, known := properties[name]
			if !known {
				return nil, c.Errf("unknown property '%s'", name)
			}
			if cfg.seen[name] && !slices.Contains(repeatable, name) {
				return nil, c.Errf("property '%s' given twice", name)
			}
			cfg.seen[name] = true
			if err := read(cfg, c, c.RemainingArgs()); err != nil {
				return nil, err
			}
		}
	}
	if err := cfg.check(); err != nil {
		return nil, c.Errf("%v", err)
	}
	return cfg.build(), nil
}

// check looks for what is missing or does not go together.
func (cfg *config) check() error {
	switch {
	case len(cfg.proxies) == 0:
		return errors.New("no proxy address; give at least one with 'proxy ADDRESS'")
	case len(cfg.files) == 0 && cfg.match.Len() == 0 && cfg.own.Len() == 0 && !cfg.www && !cfg.canary && !cfg.browsers.IsValid():
		return errors.New("nothing to do; give a list file, 'match', 'www', 'own', 'canary' or 'browsers'")
	case cfg.browsers.IsValid() && !cfg.browsers.Addr().Is4():
		return fmt.Errorf("range '%s' is one of IPv6; 'browsers' needs one of IPv4", cfg.browsers)
	case cfg.browsers.IsValid() && cfg.instant.IsValid() && cfg.browsers.Overlaps(cfg.instant):
		return fmt.Errorf("ranges '%s' and '%s' overlap; an address of both would belong to two names", cfg.browsers, cfg.instant)
	case len(cfg.alpn) > 0 && cfg.own.Len() == 0:
		return errors.New("'alpn' is announced for the proxy's own names; give them with 'own NAME'")
	case cfg.policy.Replace && cfg.seen["max_origin"]:
		return errors.New("'max_origin' has no meaning with 'mode replace'")
	}
	for _, r := range cfg.policy.Ranges {
		if !slices.ContainsFunc(cfg.proxies, func(addr netip.Addr) bool { return addr.Is4() == r.Addr().Is4() }) {
			return fmt.Errorf("no proxy address of the family of '%s'; the proxy's own names and 'health' need one", r)
		}
	}
	for _, f := range cfg.files {
		if slices.ContainsFunc(cfg.files, func(other *listFile) bool { return other != f && other.path == f.path }) {
			return fmt.Errorf("list file '%s' given twice", f.path)
		}
	}
	return nil
}

func (cfg *config) build() *Longhaul {
	if !cfg.seen["ttl"] {
		cfg.policy.TTL = steer.TTL{Min: defaultMinTTL, Max: defaultMaxTTL}
		if cfg.policy.Replace {
			cfg.policy.TTL = steer.TTL{Min: defaultReplaceTTL, Max: defaultReplaceTTL}
		}
	}
	p := &proxy{interval: cfg.interval, pause: cfg.pause}
	p.all.Add(cfg.proxies...)
	switch {
	case cfg.healthAt.Addr().IsValid():
		p.listeners = []*listener{{at: cfg.healthAt, addrs: cfg.proxies}}
	case cfg.healthAt.Port() != 0:
		for _, addr := range cfg.proxies {
			p.listeners = append(p.listeners, &listener{at: netip.AddrPortFrom(addr, cfg.healthAt.Port()), addrs: []netip.Addr{addr}})
		}
	}
	table := apart.New(cfg.policy.Ranges, readCertificates)
	cfg.policy.Place = placement(table)
	l := &Longhaul{
		policy:  cfg.policy,
		table:   table,
		own:     ownNames{cfg.own.Set(), cfg.alpn},
		canary:  cfg.canary,
		www:     cfg.www,
		lists:   &lists{inline: cfg.match.Set(), inlineExcept: cfg.except.Set(), files: cfg.files, reload: cfg.reload},
		bypass:  newBypass(cfg.bypass, &p.all),
		compare: cfg.compare,
		proxy:   p,
	}
	if cfg.instant.IsValid() {
		l.instant = newInstant(cfg.instant)
	}
	if cfg.browsers.IsValid() {
		l.firstVisits = newFirstVisits(cfg.browsers, cfg.browsersSocket)
	}
	l.intercepted = cfg.intercepted
	return l
}

func (cfg *config) path(name string) string {
	if !filepath.IsAbs(name) && cfg.root != "" {
		return filepath.Join(cfg.root, name)
	}
	return name
}

func (cfg *config) parseProxy(c *caddy.Controller, args []string) error {
	if len(args) == 0 {
		return c.ArgErr()
	}
	for _, arg := range args {
		if strings.Contains(arg, "/") {
			if err := cfg.addRange(c, arg); err != nil {
				return err
			}
			continue
		}
		addr, err := netip.ParseAddr(arg)
		switch {
		case err != nil:
			return c.Errf("'%s' is no IP address; expected one the clients reach the proxy at", arg)
		case addr.Zone() != "", addr.Is4In6(), addr.IsUnspecified(), addr.IsMulticast(), addr.IsLinkLocalUnicast():
			return c.Errf("'%s' cannot stand in an answer; expected an address all clients reach the proxy at", arg)
		case slices.Contains(cfg.proxies, addr):
			return c.Errf("proxy address '%s' given twice", arg)
		}
		cfg.proxies = append(cfg.proxies, addr)
	}
	return nil
}

// addRange takes a range of addresses that all lead to the proxy.
func (cfg *config) addRange(c *caddy.Controller, arg string) error {
	r, err := parseRange(c, arg)
	if err != nil {
		return err
	}
	for _, other := range cfg.policy.Ranges {
		if other.Addr().Is4() == r.Addr().Is4() {
			return c.Errf("range '%s' stands beside '%s'; expected one of each family", arg, other)
		}
	}
	cfg.policy.Ranges = append(cfg.policy.Ranges, r)
	return nil
}

// parseRange reads a range that gives each server an address of its own.
func parseRange(c *caddy.Controller, arg string) (netip.Prefix, error) {
	r, err := netip.ParsePrefix(arg)
	switch {
	case err != nil:
		return r, c.Errf("'%s' is no range; expected one such as 198.18.0.0/15", arg)
	case r != r.Masked():
		return r, c.Errf("range '%s' has bits behind its length; expected %s", arg, r.Masked())
	case r.Addr().BitLen()-r.Bits() < 2:
		return r, c.Errf("range '%s' has fewer than two addresses to give", arg)
	}
	return r, nil
}

// rangeOf reads a range that names have addresses of before the truth is known.
func rangeOf(of func(*config) *netip.Prefix) func(*config, *caddy.Controller, []string) error {
	return func(cfg *config, c *caddy.Controller, args []string) error {
		if len(args) != 1 {
			return c.ArgErr()
		}
		r, err := parseRange(c, args[0])
		*of(cfg) = r
		return err
	}
}

// parseBrowsers takes such a range, and a Unix socket.
func (cfg *config) parseBrowsers(c *caddy.Controller, args []string) error {
	if len(args) == 2 {
		cfg.browsersSocket = cfg.path(args[1])
		args = args[:1]
	}
	return rangeOf(func(cfg *config) *netip.Prefix { return &cfg.browsers })(cfg, c, args)
}

func (cfg *config) parseMatch(c *caddy.Controller, args []string) error {
	return addNames(c, args, cfg.match)
}

// parseExcept tells files from names by a slash: a file in the working directory is ./except.txt.
func (cfg *config) parseExcept(c *caddy.Controller, args []string) error {
	if len(args) == 0 {
		return c.ArgErr()
	}
	for _, arg := range args {
		if strings.Contains(arg, "/") {
			cfg.files = append(cfg.files, &listFile{path: cfg.path(arg), except: true})
		} else if err := addNames(c, []string{arg}, cfg.except); err != nil {
			return err
		}
	}
	return nil
}

// parseOwn takes exact names: what lies below the proxy's name is not the proxy.
func (cfg *config) parseOwn(c *caddy.Controller, args []string) error {
	exact := make([]string, len(args))
	for i, arg := range args {
		exact[i] = "=" + arg
	}
	return addNames(c, exact, cfg.own)
}

func addNames(c *caddy.Controller, args []string, to *names.Builder) error {
	if len(args) == 0 {
		return c.ArgErr()
	}
	for _, arg := range args {
		if err := to.Add(arg); err != nil {
			return c.Errf("%v", err)
		}
	}
	return nil
}

func (cfg *config) parseALPN(c *caddy.Controller, args []string) error {
	if len(args) == 0 {
		return c.ArgErr()
	}
	for _, arg := range args {
		if !slices.Contains([]string{"h2", "h3", "http/1.1"}, arg) {
			return c.Errf("unknown protocol '%s'; expected h2, h3 or http/1.1", arg)
		}
	}
	cfg.alpn = args
	return nil
}

// flag reads a property without arguments, which turns something on.
func flag(of func(*config) *bool) func(*config, *caddy.Controller, []string) error {
	return func(cfg *config, c *caddy.Controller, args []string) error {
		if len(args) != 0 {
			return c.ArgErr()
		}
		*of(cfg) = true
		return nil
	}
}

// prefixes reads addresses and ranges of them.
func prefixes(of func(*config) *[]netip.Prefix) func(*config, *caddy.Controller, []string) error {
	return func(cfg *config, c *caddy.Controller, args []string) error {
		return parsePrefixes(c, args, of(cfg))
	}
}

func parsePrefixes(c *caddy.Controller, args []string, to *[]netip.Prefix) error {
	if len(args) == 0 {
		return c.ArgErr()
	}
	for _, arg := range args {
		prefix, err := netip.ParsePrefix(arg)
		if err != nil {
			addr, addrErr := netip.ParseAddr(arg)
			if addrErr != nil || addr.Zone() != "" {
				return c.Errf("'%s' is neither an address nor a range such as 192.0.2.0/24", arg)
			}
			addr = addr.Unmap()
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		if prefix != prefix.Masked() {
			return c.Errf("range '%s' has bits behind its length; expected %s", arg, prefix.Masked())
		}
		*to = append(*to, prefix)
	}
	return nil
}

func (cfg *config) parseMode(c *caddy.Controller, args []string) error {
	return choose(c, args, map[string]func(){
		"prepend": func() { cfg.policy.Replace = false },
		"replace": func() { cfg.policy.Replace = true },
	})
}

func (cfg *config) parseAAAA(c *caddy.Controller, args []string) error {
	return choose(c, args, map[string]func(){
		"nodata": func() { cfg.policy.PassAAAA = false },
		"pass":   func() { cfg.policy.PassAAAA = true },
	})
}

func (cfg *config) parseHTTPS(c *caddy.Controller, args []string) error {
	return choose(c, args, map[string]func(){
		"nodata": func() { cfg.policy.HTTPS = steer.HTTPSNoData },
		"strip":  func() { cfg.policy.HTTPS = steer.HTTPSStrip },
		"pass":   func() { cfg.policy.HTTPS = steer.HTTPSPass },
	})
}

func (cfg *config) parseDNSSEC(c *caddy.Controller, args []string) error {
	return choose(c, args, map[string]func(){
		"skip":   func() { cfg.policy.DNSSEC = steer.DNSSECSkip },
		"signed": func() { cfg.policy.DNSSEC = steer.DNSSECSigned },
		"break":  func() { cfg.policy.DNSSEC = steer.DNSSECBreak },
	})
}

// choose carries out the one word of args.
func choose(c *caddy.Controller, args []string, words map[string]func()) error {
	if len(args) != 1 {
		return c.ArgErr()
	}
	do, known := words[args[0]]
	if !known {
		expected := make([]string, 0, len(words))
		for word := range words {
			expected = append(expected, word)
		}
		slices.Sort(expected)
		return c.Errf("unknown value '%s'; expected %s", args[0], strings.Join(expected, " or "))
	}
	do()
	return nil
}

func (cfg *config) parseMaxOrigin(c *caddy.Controller, args []string) error {
	if len(args) != 1 {
		return c.ArgErr()
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > mostOrigins {
		return c.Errf("'%s' is no number of addresses; expected 1 to %d, or 'mode replace' to keep none", args[0], mostOrigins)
	}
	cfg.policy.MaxOrigin = n
	return nil
}

func (cfg *config) parseTTL(c *caddy.Controller, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return c.ArgErr()
	}
	seconds := make([]uint32, len(args))
	for i, arg := range args {
		d, err := duration(arg)
		if err != nil || d < time.Second || d > longestTTL || d%time.Second != 0 {
			return c.Errf("'%s' is no TTL; expected whole seconds from 1s to 7d", arg)
		}
		seconds[i] = uint32(d / time.Second)
	}
	first, last := seconds[0], seconds[len(seconds)-1]
	if first > last {
		return c.Errf("ttl from %s to %s is no range; expected the lower bound first", args[0], args[1])
	}
	cfg.policy.TTL = steer.TTL{Min: first, Max: last}
	return nil
}

func (cfg *config) parseHealth(c *caddy.Controller, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return c.ArgErr()
	}
	at, err := netip.ParseAddrPort(args[0])
	if err != nil {
		port, portErr := strconv.ParseUint(args[0], 10, 16)
		if portErr != nil {
			return c.Errf("'%s' is no listener; expected PORT, or ADDRESS:PORT", args[0])
		}
		at = netip.AddrPortFrom(netip.Addr{}, uint16(port))
	}
	if at.Port() == 0 {
		return c.Errf("'%s' is no listener; expected a port from 1 to 65535", args[0])
	}
	cfg.healthAt = at
	if len(args) == 2 {
		d, err := duration(args[1])
		if err != nil || d < 100*time.Millisecond {
			return c.Errf("'%s' is no interval; expected at least 100ms", args[1])
		}
		cfg.interval = d
	}
	return nil
}

func (cfg *config) parsePause(c *caddy.Controller, args []string) error {
	if len(args) != 1 {
		return c.ArgErr()
	}
	cfg.pause = cfg.path(args[0])
	return nil
}

func (cfg *config) parseReload(c *caddy.Controller, args []string) error {
	if len(args) != 1 {
		return c.ArgErr()
	}
	d, err := duration(args[0])
	if err != nil || d < 0 {
		return c.Errf("'%s' is no duration; expected one such as 5s, or 0s to read lists only once", args[0])
	}
	cfg.reload = d
	return nil
}

// duration reads a duration as package time does, and days as 1d.
func duration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
