package followers

import (
	"encoding/gob"
	"fmt"
	"time"
)

// mostRead bounds what is read of a file, in names and followers, beside the limit of the table.
const mostRead = 1 << 20

// saved is the table in a file.
type saved struct {
	Decayed int64
	Names   []savedName
}

type savedName struct {
	Text      string
	Asks      float32
	Types     Types
	First     []Client
	Clients   uint8
	Followers []savedFollower
}

type savedFollower struct {
	Name   uint32
	Count  float32
	First  Client
	Proved bool
}

// Write writes the table, without what clients asked within the window.
func (t *Table) Write(out *gob.Encoder) error {
	s := saved{Decayed: t.decayed.Unix(), Names: make([]savedName, len(t.byID))}
	for id, entry := range t.byID {
		known := savedName{entry.text, entry.asks, entry.types, entry.first[:], entry.clients, make([]savedFollower, len(entry.followers))}
		for at, f := range entry.followers {
			known.Followers[at] = savedFollower{f.name, f.count, f.first, f.proved}
		}
		s.Names[id] = known
	}
	return out.Encode(s)
}

// Read returns the table that was written. A later release may write more than this one knows, which is left out.
func Read(in *gob.Decoder, limit int, now time.Time) (*Table, error) {
	var s saved
	if err := in.Decode(&s); err != nil {
		return nil, err
	}
	t := New(limit, now)
	if decayed := time.Unix(s.Decayed, 0); decayed.Before(now) {
		t.decayed = decayed
	}
	if len(s.Names) > mostRead {
		return nil, fmt.Errorf("it has %d names", len(s.Names))
	}
	for _, known := range s.Names {
		entry := name{text: known.Text, asks: known.Asks, types: known.Types, clients: min(known.Clients, popularClients)}
		copy(entry.first[:], known.First)
		if len(known.Followers) > mostFollowers {
			return nil, fmt.Errorf("%s has %d followers", known.Text, len(known.Followers))
		}
		for _, f := range known.Followers {
			if int(f.Name) >= len(s.Names) {
				return nil, fmt.Errorf("a follower of %s has no name", known.Text)
			}
			entry.followers = append(entry.followers, follower{f.Name, f.Count, f.First, f.Proved})
		}
		t.followers += len(entry.followers)
		if _, twice := t.ids[entry.text]; twice {
			return nil, fmt.Errorf("%s stands there twice", entry.text)
		}
		t.ids[entry.text] = uint32(len(t.byID))
		t.byID = append(t.byID, entry)
	}
	t.prepare(now)
	return t, nil
}
