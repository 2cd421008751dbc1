package main

import (
	"context"
	"sync"
)

// gates hold responses until a test lets them continue. So a test of the middle of a response needs no pause that must
// be long enough.
var gates gateKeeper

type gateKeeper struct {
	mu    sync.Mutex
	known map[string]*gate
}

// at returns the gate of that name, which is closed at first.
func (k *gateKeeper) at(name string) *gate {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[string]*gate{}
	}
	if k.known[name] == nil {
		k.known[name] = &gate{changed: make(chan struct{})}
	}
	return k.known[name]
}

// gate counts how often it was opened.
type gate struct {
	mu      sync.Mutex
	opened  int
	changed chan struct{} // closed at the next opening
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened++
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *gate) state() (opened int, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened, g.changed
}

// pass waits until the gate has been opened so many times. It returns false if the client goes first.
func (g *gate) pass(ctx context.Context, times int) bool {
	for {
		opened, changed := g.state()
		if opened >= times {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
