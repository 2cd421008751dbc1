package longhaul

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
	"weak"

	"example.org/longhaul/coredns-plugin/names"
)

// listFile is one file of names.
type listFile struct {
	path    string
	except  bool // its names are left alone instead of steered
	using   *loadedList
	refused fs.FileInfo // the version refused last, so that it is reported once
	missing bool        // the file cannot be read at all, and that was reported
}

// loadedList is a list and the version of the file it was read from.
type loadedList struct {
	*names.List
	version fs.FileInfo
}

// settleTime is how long a file that changed in place has to stay the same before it is read, as the program that
// writes it may not be done. A file that was renamed into place is complete.
const settleTime = 500 * time.Millisecond

// refresh reads the file if it changed, and reports whether another list is in use now. A version that is refused leaves
// the old list in use.
func (f *listFile) refresh(ctx context.Context, settle time.Duration) bool {
	version, err := os.Stat(f.path)
	if err != nil {
		if !f.missing {
			f.missing = true
			f.fail(fmt.Errorf("cannot read list: %w", err))
		}
		return false
	}
	f.missing = false
	switch {
	case sameVersion(version, f.using.version):
		listRefused.WithLabelValues(f.path).Set(0) // a file that was missing is back
		return false
	case f.refused != nil && sameVersion(version, f.refused):
		return false
	}
	if os.SameFile(version, f.using.version) && !f.settled(ctx, version, settle) {
		return false // the next round looks again
	}
	list, err := sharedLists.load(f.path, f.using)
	if errors.Is(err, errChanging) {
		return false
	}
	if err != nil {
		f.refused = version
		f.fail(err)
		return false
	}
	f.using, f.refused = list, nil
	f.report()
	log.Infof("List %s changed: %d names", f.path, list.Names.Len())
	return true
}

// settled waits and reports whether the file is still the version that was seen before.
func (f *listFile) settled(ctx context.Context, seen fs.FileInfo, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
	}
	now, err := os.Stat(f.path)
	return err == nil && sameVersion(now, seen)
}

func (f *listFile) fail(err error) {
	reloadFailures.WithLabelValues(f.path).Inc()
	listRefused.WithLabelValues(f.path).Set(1)
	log.Errorf("List not reloaded, that of %s stays in use: %v", f.using.version.ModTime().Format(time.RFC3339), err)
}

// report shows the list in use in the metrics.
func (f *listFile) report() {
	entries.WithLabelValues(f.path).Set(float64(f.using.Names.Len()))
	listRefused.WithLabelValues(f.path).Set(0)
	reloadTime.WithLabelValues(f.path).Set(float64(f.using.version.ModTime().UnixNano()) / 1e9)
}

// sharedLists are the lists in use anywhere in the process. When CoreDNS reloads its Corefile the new server is set up while
// the old one still runs: without this a list of a million names would be in memory twice, and be parsed again although it
// did not change. Lists that nobody uses any more are the garbage collector's.
var sharedLists = listCache{lists: map[string]weak.Pointer[loadedList]{}}

type listCache struct {
	mu    sync.Mutex // held while a list is read, so that two servers that see a change read it once
	lists map[string]weak.Pointer[loadedList]
}

var errChanging = errors.New("the file changed while it was read")

// load returns the list at path, read now unless the same version is in use somewhere. Beside a list in use, one that looks
// half written is refused.
func (c *listCache) load(path string, inUse *loadedList) (*loadedList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var giveWay func()
	if inUse != nil {
		giveWay = func() { time.Sleep(pauseWhileReading) }
	}
	list, err := c.read(path, giveWay)
	if err != nil {
		return nil, err
	}
	if inUse != nil {
		if err := halfWritten(list.List, inUse.List); err != nil {
			return nil, fmt.Errorf("%s: %w; a reload of CoreDNS (SIGUSR1) takes it as it is", path, err)
		}
	}
	c.lists[path] = weak.Make(list)
	return list, nil
}

func (c *listCache) read(path string, giveWay func()) (*loadedList, error) {
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
	list, parseErr := names.Parse(file, path, int(version.Size()), giveWay)
	after, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read list: %w", err)
	}
	if !sameVersion(version, after) {
		return nil, fmt.Errorf("%s: %w", path, errChanging)
	}
	if parseErr != nil {
		return nil, parseErr
	}
	return &loadedList{list, version}, nil
}

// A server on one processor would answer nobody while it reads a list: the scheduler looks at the network only every ten
// milliseconds as long as something else has work. Nine tenths of the time are given away instead: a million names take more
// than a second then, which nobody waits for, and queries meanwhile hardly longer than ever.
const pauseWhileReading = time.Millisecond

// Longer lists that shrink to less than half look cut off. Shorter ones are edited by hand, where it is nothing unusual.
const guardedEntries = 1000

// halfWritten tells why next looks cut off beside the list in use, nil if it does not.
func halfWritten(next, inUse *names.List) error {
	if inUse.Terminated && !next.Terminated {
		return errors.New("the last line does not end in a newline, as it used to: the file looks half written")
	}
	was, is := inUse.Names.Len(), next.Names.Len()
	if was >= guardedEntries && is < was/2 {
		return fmt.Errorf("only %d names where %d are in use: the file looks half written", is, was)
	}
	return nil
}

// sameVersion reports whether two looks at a path saw the same content, as far as that can be seen without reading it.
func sameVersion(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
