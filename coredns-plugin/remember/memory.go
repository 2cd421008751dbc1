package remember

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	clog "github.com/coredns/coredns/plugin/pkg/log"

	"example.org/longhaul/coredns-plugin/push/wire"
	"example.org/longhaul/coredns-plugin/remember/store"
)

var log = clog.NewWithPlugin(pluginName)

// memory is the store of a file. A reload of the Corefile keeps it.
type memory struct {
	*store.Store
	path string
	// id is that by which a ground knows the memory.
	id wire.ID
}

// memories are those of this process, by their paths.
var memories = struct {
	sync.Mutex
	known map[string]*memory
}{known: map[string]*memory{}}

// open returns the memory of path, which takes at most limit bytes. A file that cannot be used is an empty memory.
func open(path string, limit int) *memory {
	memories.Lock()
	defer memories.Unlock()
	if known := memories.known[path]; known != nil {
		known.Resize(limit)
		return known
	}
	kept, err := store.Load(path, limit)
	if err != nil {
		kept = store.New(limit)
		if !errors.Is(err, fs.ErrNotExist) {
			log.Warningf("Nothing is remembered from before the start: cannot use %s: %s", path, err)
		}
	}
	m := &memory{kept, path, idOf(path, err != nil)}
	memories.known[path] = m
	return m
}

// close saves the memory and lets its path be opened again.
func (m *memory) close() error {
	memories.Lock()
	defer memories.Unlock()
	if memories.known[m.path] == m {
		delete(memories.known, m.path)
		m.save()
	}
	return nil
}

func (m *memory) save() {
	if err := m.Save(m.path); err != nil {
		saveFailures.Inc()
		log.Warningf("Cannot save the names that are remembered: %s", err)
	}
}

// keep saves the memory every so often, and shows its size, until ctx ends.
func (m *memory) keep(ctx context.Context, every time.Duration) {
	saves, shows := time.NewTicker(every), time.NewTicker(time.Second)
	defer saves.Stop()
	defer shows.Stop()
	for {
		m.show()
		select {
		case <-saves.C:
			m.save()
		case <-shows.C:
		case <-ctx.Done():
			return
		}
	}
}

func (m *memory) show() {
	taken, answers := m.Size()
	bytesTaken.Set(float64(taken))
	answersKept.Set(float64(answers))
}
