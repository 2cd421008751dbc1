package longhaul

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"example.org/longhaul/coredns-plugin/steer"
)

// proxy knows the proxy's addresses and whether clients are to be steered to them now.
type proxy struct {
	all       steer.Addresses
	listeners []*listener   // checked for life; none: every address is taken to be good
	interval  time.Duration // between two looks at the listeners and at pause
	pause     string        // nothing is steered while this file exists; empty for no such switch

	state atomic.Pointer[proxyState]
}

// proxyState is what queries see. It is replaced whole, never changed.
type proxyState struct {
	good *steer.Addresses
	left steer.Verdict // why nothing is steered; 0 while names are
}

const defaultInterval = time.Second

// now returns the addresses to steer to, or why there is no steering.
func (p *proxy) now() (*steer.Addresses, steer.Verdict) {
	s := p.state.Load()
	return s.good, s.left
}

// serving returns the addresses that answer for the proxy's own names: the good ones, or all when none is.
func (p *proxy) serving() *steer.Addresses {
	if good, _ := p.now(); good.Len() > 0 {
		return good
	}
	return &p.all
}

// start takes a first look, so that queries find a state, and goes on until ctx ends.
func (p *proxy) start(ctx context.Context, done *sync.WaitGroup) {
	p.look(ctx)
	if len(p.listeners) > 0 || p.pause != "" {
		done.Go(func() { every(ctx, p.interval, func() { p.look(ctx) }) })
	}
}

// look finds the present state and puts it in place.
func (p *proxy) look(ctx context.Context) {
	is := &proxyState{good: &p.all}
	if len(p.listeners) > 0 {
		is.good = checkAll(ctx, p.listeners)
		if ctx.Err() != nil {
			return // the checks failed because the server stops
		}
	}
	switch {
	case p.paused():
		is.left = steer.LeftPaused
	case is.good.Len() == 0:
		is.left = steer.LeftUnhealthy
	}
	was := p.state.Swap(is)
	steering.Set(oneIf(is.left == 0))
	if was == nil && is.left == 0 || was != nil && was.left == is.left {
		return
	}
	switch is.left {
	case steer.LeftPaused:
		log.Infof("Steering is off: %s exists", p.pause)
	case steer.LeftUnhealthy:
		log.Warning("Steering is off: no proxy listener answers")
	default:
		log.Info("Steering is on")
	}
}

func (p *proxy) paused() bool {
	if p.pause == "" {
		return false
	}
	_, err := os.Stat(p.pause)
	return err == nil
}

// every calls do once each d until ctx ends.
func every(ctx context.Context, d time.Duration, do func()) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
