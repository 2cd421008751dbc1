package longhaul

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"weak"

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

// lists reports whether the name is listed.
func (l *lists) lists(k *names.Key) bool { return anyHas(l.sets.Load().listed, k) }

// excepts reports whether the name is excepted, however it is listed.
func (l *lists) excepts(k *names.Key) bool { return anyHas(l.sets.Load().excepted, k) }

func anyHas(sets []*names.Set, k *names.Key) bool {
	for _, s := range sets {
		if s.Has(k) {
			return true
		}
	}
	return false
}

// listFile is one file of names.
type listFile struct {
	path   string
	except bool // its names are left alone instead of steered
	using  *loadedList
	failed fs.FileInfo // the version refused last, which is not reported again
}

// load reads all files for the first time.
func (l *lists) load() error {
	for _, f := range l.files {
		list, err := sharedLists.load(f.path, nil)
		if err != nil {
			return err
		}
		f.use(list)
	}
	l.publish()
	return nil
}

// use takes list into use for the next publish.
func (f *listFile) use(list *loadedList) {
	f.using = list
	entries.WithLabelValues(f.path).Set(float64(list.Listed.Len() + list.Exempt.Len()))
	reloadTime.WithLabelValues(f.path).Set(float64(list.version.ModTime().UnixNano()) / 1e9)
}

// publish makes what is loaded visible to queries, in one step.
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
			add(&sets.excepted, f.using.Listed)
		} else {
			add(&sets.listed, f.using.Listed)
		}
		add(&sets.excepted, f.using.Exempt)
	}
	l.sets.Store(&sets)
}

// start watches the files until ctx ends.
func (l *lists) start(ctx context.Context, done *sync.WaitGroup) {
	if l.reload == 0 || len(l.files) == 0 {
		return
	}
	done.Go(func() { every(ctx, l.reload, func() { l.refresh(ctx) }) })
}

// refresh reads the files that changed. A file that is refused leaves its old list in use.
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

// settleTime is how long a file that changed in place has to stay the same before it is read: whoever writes it may not be
// done. A file that was renamed into place is complete.
const settleTime = 500 * time.Millisecond

func (f *listFile) refresh(ctx context.Context, settle time.Duration) (changed bool) {
	now, err := os.Stat(f.path)
	if err == nil && (sameVersion(now, f.using.version) || f.failed != nil && sameVersion(now, f.failed)) {
		return false
	}
	if err == nil && os.SameFile(now, f.using.version) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(settle):
		}
		again, againErr := os.Stat(f.path)
		if againErr != nil || !sameVersion(now, again) {
			return false // still being written; the next round looks again
		}
	}
	var list *loadedList
	if err == nil {
		list, err = sharedLists.load(f.path, f.using)
	}
	if errors.Is(err, errChanging) {
		return false
	}
	if err != nil {
		if now == nil && f.failed == missing {
			return false // said once
		}
		f.failed = now
		if now == nil {
			f.failed = missing
		}
		reloadFailures.WithLabelValues(f.path).Inc()
		log.Errorf("List not reloaded, the one of %s stays in use: %v", f.using.version.ModTime().Format(time.RFC3339), err)
		return false
	}
	f.failed = nil
	f.use(list)
	log.Infof("List %s reloaded: %d names", f.path, list.Listed.Len())
	return true
}

// missing stands for a file that is not there in listFile.failed.
var missing fs.FileInfo = missingFile{}

type missingFile struct{ fs.FileInfo }

// loadedList is a list and the version of the file it was read from.
type loadedList struct {
	*names.List
	version fs.FileInfo
}

// sharedLists are the lists in use anywhere in the process, by path. When CoreDNS reloads its Corefile the new server is set
// up while the old one still runs: without this a list of a million names would be in memory twice, and be parsed again
// although it did not change. Lists that nobody uses any more are the garbage collector's.
var sharedLists = listCache{lists: map[string]weak.Pointer[loadedList]{}}

type listCache struct {
	mu    sync.Mutex // held while a list is read, so that two servers that see a change read it once
	lists map[string]weak.Pointer[loadedList]
}

var errChanging = errors.New("the file changed while it was read")

// A list that shrank to less than half of what is in use looks cut off. Short ones are edited by hand, where it is normal.
const (
	guardedEntries = 1000
	guardedShare   = 2
)

// load returns the list at path, read now unless the same version is in use somewhere. When a list is already in use, a
// new one that looks half written compared with it is refused.
func (c *listCache) load(path string, inUse *loadedList) (*loadedList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read list: %w", err)
	}
	defer func() { _ = file.Close() }()
	version, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read list: %w", err)
	}
	if list := c.lists[path].Value(); list != nil && sameVersion(list.version, version) {
		return list, nil
	}
	parsed, err := names.Parse(file, path, int(version.Size()))
	after, statErr := file.Stat()
	if statErr != nil {
		return nil, fmt.Errorf("cannot read list: %w", statErr)
	}
	if !sameVersion(version, after) {
		return nil, fmt.Errorf("%s: %w", path, errChanging)
	}
	if err != nil {
		return nil, err
	}
	if inUse != nil {
		if err := halfWritten(parsed, inUse.List); err != nil {
			return nil, fmt.Errorf("%s: %w; it is read again when it changes, and a reload of CoreDNS (SIGUSR1) takes it as it is", path, err)
		}
	}
	list := &loadedList{parsed, version}
	c.lists[path] = weak.Make(list)
	return list, nil
}

// halfWritten tells why next looks cut off compared with the list in use, nil if it does not.
func halfWritten(next, inUse *names.List) error {
	if inUse.Terminated && !next.Terminated {
		return errors.New("the last line does not end in a newline, as it used to: the file looks half written")
	}
	was, is := inUse.Listed.Len(), next.Listed.Len()
	if was >= guardedEntries && is < was/guardedShare {
		return fmt.Errorf("only %d names where %d are in use: the file looks half written", is, was)
	}
	return nil
}

// sameVersion reports whether two looks at a file saw the same content, as far as can be told without reading it.
func sameVersion(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
