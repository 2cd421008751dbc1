package longhaul

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"example.org/longhaul/coredns-plugin/names"
)

// lists are the names to steer and those to leave alone, from the Corefile and from files that are watched for changes.
type lists struct {
	inline, inlineExcept *names.Set
	files                []*listFile
	reload               time.Duration // 0: files are read once

	sets atomic.Pointer[nameSets]
}

// nameSets are the sets that queries are matched against. It is replaced whole, never changed.
type nameSets struct{ listed, excepted []*names.Set }

// listed reports whether the name is listed.
func (l *lists) listed(k *names.Key) bool { return anyHas(l.sets.Load().listed, k) }

// excepted reports whether the name is excepted, however it is listed.
func (l *lists) excepted(k *names.Key) bool { return anyHas(l.sets.Load().excepted, k) }

func anyHas(sets []*names.Set, k *names.Key) bool {
	for _, s := range sets {
		if s.Has(k) {
			return true
		}
	}
	return false
}

// load reads all files for the first time.
func (l *lists) load() error {
	for _, f := range l.files {
		list, err := sharedLists.load(f.path, nil)
		if err != nil {
			return err
		}
		f.using = list
	}
	l.publish()
	return nil
}

// publish makes the lists in use visible to queries, all in one step.
func (l *lists) publish() {
	var sets nameSets
	add := func(to *[]*names.Set, s *names.Set) {
		if s.Len() > 0 {
			*to = append(*to, s)
		}
	}
	add(&sets.listed, l.inline)
	add(&sets.excepted, l.inlineExcept)
	for _, f := range l.files {
		if f.except {
			add(&sets.excepted, f.using.Names)
		} else {
			add(&sets.listed, f.using.Names)
		}
	}
	l.sets.Store(&sets)
}

// start watches the files until ctx ends.
func (l *lists) start(ctx context.Context, done *sync.WaitGroup) {
	for _, f := range l.files {
		f.report()
	}
	if l.reload > 0 && len(l.files) > 0 {
		done.Go(func() { every(ctx, l.reload, func() { l.refresh(ctx) }) })
	}
}

// refresh reads the files that changed.
func (l *lists) refresh(ctx context.Context) {
	changed := false
	for _, f := range l.files {
		if f.refresh(ctx, min(l.reload, settleTime)) {
			changed = true
		}
	}
	if changed {
		l.publish()
	}
}
