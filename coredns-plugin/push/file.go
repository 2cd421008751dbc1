package push

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"example.org/longhaul/coredns-plugin/internal/whole"
	"example.org/longhaul/coredns-plugin/push/followers"
	"example.org/longhaul/coredns-plugin/push/wire"
)

const (
	// magic begins the file, with the number of its format.
	magic = "longhaul followers 1\n"
	// saveEvery bounds what a power cut loses.
	saveEvery = 5 * time.Minute
	// mostFile bounds what is read of a file. A full table with all remotes takes less.
	mostFile = 256 << 20
)

// savedRemote is what is known of a remote, in a file.
type savedRemote struct {
	ID   wire.ID
	Had  map[uint64]uint32
	Seen int64
}

func (h *hub) save() {
	var text bytes.Buffer
	err := h.write(&text)
	if err == nil {
		err = whole.Write(h.file, func(file io.Writer) error {
			_, err := text.WriteTo(file)
			return err
		})
	}
	if err != nil {
		saveFailures.Inc()
		log.Warningf("Cannot save which names follow: %s", err)
	}
}

// write appends the file to text, so that lookups do not wait for the disk.
func (h *hub) write(text *bytes.Buffer) error {
	text.WriteString(magic)
	h.mu.Lock()
	defer h.mu.Unlock()
	out := gob.NewEncoder(text)
	known := make([]savedRemote, len(h.remotes.byNumber))
	for number, r := range h.remotes.byNumber {
		known[number] = savedRemote{r.id, r.had, r.seen.Unix()}
	}
	if err := out.Encode(known); err != nil {
		return err
	}
	return h.table.Write(out)
}

// load reads what was learned before the start. A file that cannot be used is an empty table.
func (h *hub) load(limit int) {
	file, err := os.Open(h.file)
	if err == nil {
		defer func() { _ = file.Close() }()
		err = h.restore(io.LimitReader(file, mostFile), limit)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warningf("Which names follow is not known from before the start: cannot use %s: %s", h.file, err)
	}
}

func (h *hub) restore(file io.Reader, limit int) error {
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(file, begin); err != nil {
		return err
	}
	if string(begin) != magic {
		return errors.New("it is not a file of followers, or of another release")
	}
	in := gob.NewDecoder(file)
	var known []savedRemote
	if err := in.Decode(&known); err != nil {
		return err
	}
	if len(known) > mostRemotes {
		return errors.New("it has too many remotes")
	}
	table, err := followers.Read(in, limit, h.now())
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.table = table
	for _, r := range known {
		if r.Had == nil {
			r.Had = map[uint64]uint32{}
		}
		h.remotes.byNumber = append(h.remotes.byNumber, &remote{id: r.ID, had: r.Had, seen: time.Unix(r.Seen, 0)})
		h.remotes.hadOfAll += len(r.Had)
	}
	return nil
}
