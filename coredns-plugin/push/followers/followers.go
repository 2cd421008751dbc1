// Package followers learns which names are asked within seconds of a name, and which names many clients ask. It knows no
// clock, no DNS message and no stream.
//
// Anybody behind a remote can ask for anything, so what one client asks teaches nothing that others feel: a name follows
// another for two clients or for a page of the name, and it is popular for three clients. A follower that is asked after few
// of the lookups of its name is not sent.
package followers

import (
	"slices"
	"time"

	"example.org/longhaul/coredns-plugin/push/wire"
)

const (
	// window is how long after a name others follow it. A page with a chain of names takes some round trips to load.
	window = 10 * time.Second
	// recentNames bounds the names of a client within the window. Further ones follow nothing.
	recentNames = 64
	// recentClients bounds the clients with names within the window.
	recentClients = 4096
	// mostFollowers bounds the followers of a name. The least asked is replaced.
	mostFollowers = 32
	// half is the time in which what was learned counts half.
	half = 7 * 24 * time.Hour
	// leastShare is the part of the lookups of a name after which a follower is asked, or it is not sent.
	leastShare = 0.25
	// leastCount is below what one lookup of the last weeks leaves. What is below is forgotten.
	leastCount = 0.1
	// popularClients is the number of clients of a popular name. It is sent to remotes whose clients never asked for it, so
	// it must say nothing about anybody.
	popularClients = 3
	// What a name and a follower take, in bytes (`make bench ONLY=names-pushed ARGS=--part=memory`).
	nameBytes     = 200
	followerBytes = 24
)

// Remote numbers a remote, from 0.
type Remote uint16

// Client is a client of a remote, in a period of the remote's hashes.
type Client struct {
	Remote Remote
	Period wire.Period
	Hash   wire.Hash
}

// other returns true if the two are surely different clients. Hashes of different periods cannot be compared.
func (c Client) other(than Client) bool {
	return c.Remote != than.Remote || c.Period == than.Period && c.Hash != than.Hash
}

// Types are the types of record that clients ask of a name.
type Types uint8

// Table holds what was learned.
type Table struct {
	limit int
	byID  []name
	ids   map[string]uint32
	// followers is the number of all followers.
	followers int
	recent    map[Client]*recent
	decayed   time.Time
}

type name struct {
	text string
	// asks is the number of lookups, decayed. A client's types of one name within the window are one lookup.
	asks  float32
	types Types
	// first are the first clients, until they are enough.
	first     [popularClients - 1]Client
	clients   uint8
	followers []follower
}

type follower struct {
	name   uint32
	count  float32
	first  Client
	proved bool
}

// recent are a client's names within the window.
type recent struct {
	names []asked
}

type asked struct {
	name uint32
	at   time.Time
}

// New returns a table that takes at most limit bytes, roughly.
func New(limit int, now time.Time) *Table {
	return &Table{limit: limit, ids: map[string]uint32{}, recent: map[Client]*recent{}, decayed: now}
}

// Lookup is a client's lookup of a name.
type Lookup struct {
	Client Client
	Name   string
	Types  Types
	// Again is true if the remote knows the name, and asks for its records of today. Such lookups are as frequent as the TTL
	// is short, so they say nothing about what follows: others follow them alone.
	Again bool
}

// Ask notes a lookup. It returns false if it belongs to one of the same client and name within the window: then nothing new
// follows from it.
func (t *Table) Ask(l Lookup, now time.Time) bool {
	t.prepare(now)
	id := t.id(l.Name)
	t.byID[id].types |= l.Types
	seen := t.within(l.Client, now)
	if seen == nil {
		return true
	}
	if slices.ContainsFunc(seen.names, func(a asked) bool { return a.name == id }) {
		return false
	}
	if !l.Again {
		t.byID[id].asked(l.Client)
		for _, other := range seen.names {
			t.follow(other.name, id, l.Client, false)
		}
	}
	if len(seen.names) < recentNames {
		seen.names = append(seen.names, asked{id, now})
	}
	return true
}

// Page notes that a page of a host names other hosts. If no client asked for such a host yet, types are what they ask.
func (t *Table) Page(host string, names []string, types Types, now time.Time) {
	t.prepare(now)
	id := t.id(host)
	for _, text := range names[:min(len(names), mostFollowers)] {
		other := t.id(text)
		if other == id {
			continue
		}
		if t.byID[other].types == 0 {
			t.byID[other].types = types
		}
		t.follow(id, other, Client{}, true)
	}
}

// Following returns the names that usually follow a name, the most usual one first.
func (t *Table) Following(text string) []Following {
	id, ok := t.ids[text]
	if !ok {
		return nil
	}
	entry := t.byID[id]
	sent := slices.DeleteFunc(slices.Clone(entry.followers), func(f follower) bool {
		return !f.proved || f.count < leastShare*entry.asks
	})
	slices.SortStableFunc(sent, func(a, b follower) int { return descending(a.count, b.count) })
	out := make([]Following, len(sent))
	for i, f := range sent {
		out[i] = Following{t.byID[f.name].text, t.byID[f.name].types}
	}
	return out
}

// Following is a name that follows, and the types that clients ask of it.
type Following struct {
	Name  string
	Types Types
}

// Popular returns the names that several clients asked for, the most asked first, at most limit.
func (t *Table) Popular(limit int) []Following {
	var ids []uint32
	for id, entry := range t.byID {
		if entry.clients >= popularClients {
			ids = append(ids, uint32(id))
		}
	}
	slices.SortStableFunc(ids, func(a, b uint32) int { return descending(t.byID[a].asks, t.byID[b].asks) })
	out := make([]Following, 0, min(limit, len(ids)))
	for _, id := range ids[:cap(out)] {
		out = append(out, Following{t.byID[id].text, t.byID[id].types})
	}
	return out
}

// Asks returns how often a name was asked of late.
func (t *Table) Asks(text string) float32 {
	if id, ok := t.ids[text]; ok {
		return t.byID[id].asks
	}
	return 0
}

// Size returns the bytes that are taken, roughly, and the numbers of names and followers.
func (t *Table) Size() (taken, names, followers int) {
	return len(t.byID)*nameBytes + t.followers*followerBytes, len(t.byID), t.followers
}

func descending(a, b float32) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	default:
		return 0
	}
}

// asked counts a lookup of the name.
func (n *name) asked(client Client) {
	n.asks++
	if n.clients >= popularClients {
		return
	}
	for i := range n.clients {
		if known := n.first[i]; !client.other(known) {
			// The same client, or one of another period, which may be the same.
			n.first[i] = client
			return
		}
	}
	if int(n.clients) < len(n.first) {
		n.first[n.clients] = client
	}
	n.clients++
}

// follow counts that a client asked for the name of an identifier after that of another, or that a page names it.
func (t *Table) follow(before, id uint32, client Client, page bool) {
	entry := &t.byID[before]
	at := slices.IndexFunc(entry.followers, func(f follower) bool { return f.name == id })
	if at < 0 {
		fresh := follower{name: id, first: client, proved: page}
		if len(entry.followers) < mostFollowers {
			at = len(entry.followers)
			entry.followers = append(entry.followers, fresh)
			t.followers++
		} else {
			at = leastOf(entry.followers)
			// A new one has to be asked more often than the least, so that noise replaces noise alone.
			if entry.followers[at].count > 1 {
				return
			}
			entry.followers[at] = fresh
		}
	}
	f := &entry.followers[at]
	if page {
		// A page's names are as sure as if each of its lookups had been followed by theirs.
		f.proved, f.count = true, max(f.count, entry.asks, 1)
		return
	}
	f.count++
	switch {
	case f.proved:
	case client.other(f.first):
		f.proved = true
	default:
		f.first = client
	}
}

func leastOf(followers []follower) int {
	least := 0
	for i, f := range followers {
		if f.count < followers[least].count {
			least = i
		}
	}
	return least
}

// within returns a client's names within the window, nil if there are too many clients.
func (t *Table) within(client Client, now time.Time) *recent {
	seen := t.recent[client]
	if seen == nil {
		if len(t.recent) >= recentClients {
			t.forgetClients(now)
			if len(t.recent) >= recentClients {
				return nil
			}
		}
		seen = &recent{}
		t.recent[client] = seen
	}
	seen.names = slices.DeleteFunc(seen.names, func(a asked) bool { return gone(a, now) })
	return seen
}

func gone(a asked, now time.Time) bool {
	age := now.Sub(a.at)
	return age < 0 || age > window
}

func (t *Table) forgetClients(now time.Time) {
	for client, seen := range t.recent {
		if !slices.ContainsFunc(seen.names, func(a asked) bool { return !gone(a, now) }) {
			delete(t.recent, client)
		}
	}
}

// prepare lets what was learned fade, and makes room for the names to come. Identifiers hold from then on.
func (t *Table) prepare(now time.Time) {
	t.decay(now)
	if taken, _, _ := t.Size(); taken >= t.limit {
		t.makeRoom()
	}
}

// id returns the identifier of a name, which is made if it is new.
func (t *Table) id(text string) uint32 {
	if id, ok := t.ids[text]; ok {
		return id
	}
	id := uint32(len(t.byID))
	t.byID = append(t.byID, name{text: text})
	t.ids[text] = id
	return id
}
