package names

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Builder collects entries for a Set.
type Builder struct {
	entries []byte // as in a group, in the order they came in; hash bits come when a set is made
	length  int
	// giveWay, if not nil, is called for every giveWayNames names in each step of the work.
	giveWay func()
	steps   int
}

const (
	// giveWayNames take about a tenth of a millisecond.
	giveWayNames = 1024
	// The places of groups are 32-bit numbers. With their heads, groups of the shortest names take not twice as much room.
	maxEntryBytes = 2 << 30
)

var errTooLarge = errors.New("more than 2 GiB of names")

// NewBuilder returns a builder with room for about textBytes bytes of names.
func NewBuilder(textBytes int) *Builder {
	return &Builder{entries: make([]byte, 0, textBytes)}
}

// Add adds one entry as written (see the README's list of forms).
func (b *Builder) Add(entry string) error { return b.addEntry([]byte(entry)) }

func (b *Builder) addEntry(text []byte) error {
	return b.add(func(dst []byte) ([]byte, Scope, error) { return appendEntry(dst, text) })
}

func (b *Builder) addName(text []byte, scope Scope) error {
	return b.add(func(dst []byte) ([]byte, Scope, error) {
		dst, err := appendName(dst, text)
		return dst, scope, err
	})
}

func (b *Builder) add(appendTo func([]byte) ([]byte, Scope, error)) error {
	start := len(b.entries)
	if start > maxEntryBytes {
		return errTooLarge
	}
	entries, scope, err := appendTo(append(b.entries, 0, 0))
	if err != nil {
		b.entries = entries[:start]
		return err
	}
	entries[start], entries[start+1] = byte(scope), byte(len(entries)-start-headBytes)
	b.entries = entries
	b.length++
	b.step()
	return nil
}

// Len is the number of entries added so far, repeated ones counted each time.
func (b *Builder) Len() int { return b.length }

// Set makes the set of what was added.
func (b *Builder) Set() *Set {
	count := b.length/groupNames + 1
	s := &Set{groups: make([]uint32, count+1), filter: make([]uint64, b.length/wordNames+1)}
	b.measure(s, count)
	b.place(s, count)
	b.arrange(s, count)
	return s
}

func (b *Builder) step() {
	if b.steps++; b.steps%giveWayNames == 0 && b.giveWay != nil {
		b.giveWay()
	}
}

// each calls do with each entry, and its name ready for lookups.
func (b *Builder) each(do func(entry []byte, k *Key)) {
	var k Key
	for rest := b.entries; len(rest) > 0; {
		end := headBytes + int(rest[1])
		k.readText(copy(k.text[:], rest[headBytes:end]))
		do(rest[:end], &k)
		rest = rest[end:]
		b.step()
	}
}

// hashes returns the hash of the whole name. If visit is not nil, it gets those of the names above it first, and its own last.
func (k *Key) hashes(visit func(uint64)) uint64 {
	hash, end := rootHash, k.length
	for i := k.labels - 1; i >= 0; i-- {
		start := int(k.starts[i])
		hash, end = k.withLabel(hash, start, end), start-1
		if visit != nil {
			visit(hash)
		}
	}
	return hash
}

// measure fills the filter and finds where each group ends when they lie one behind the other.
func (b *Builder) measure(s *Set, count int) {
	learn := func(hash uint64) {
		at, known := filterBits(hash, len(s.filter))
		s.filter[at] |= known
	}
	b.each(func(entry []byte, k *Key) {
		s.groups[scale(k.hashes(learn), count)] += uint32(len(entry))
		s.depths |= 1 << min(k.labels, deepest)
	})
	end := uint32(0)
	for i := range count {
		end = toLine(end + groupHead + s.groups[i])
		s.groups[i] = end
	}
	s.groups[count] = end
	s.entries = make([]byte, end+behindGroups)
}

// place puts each entry into its group, in any order. A group is filled from its end, and then starts where its first entry
// is, behind room for its head.
func (b *Builder) place(s *Set, count int) {
	b.each(func(entry []byte, k *Key) {
		hash := k.hashes(nil)
		start := &s.groups[scale(hash, count)]
		*start -= uint32(len(entry))
		entry[0] |= byte(tagOf(hash))
		copy(s.entries[*start:], entry)
	})
}

// arrange puts the entries of each group into their parts, makes one of those with the same name, counts what is left, and
// moves the groups together.
func (b *Builder) arrange(s *Set, count int) {
	var sorted [parts][]byte
	write, end := uint32(0), uint32(0)
	for i := range count {
		from := s.groups[i]
		end = s.groups[count]
		if i+1 < count {
			end = (s.groups[i+1] - groupHead) &^ (lineBytes - 1) // what lies before an entry is less than a head and a line
		}
		for p := range sorted {
			sorted[p] = sorted[p][:0]
		}
		for rest := s.entries[from:end]; len(rest) > 0; {
			size := headBytes + int(rest[1])
			part := &sorted[partOf(uint64(rest[0]))]
			if same := sameName(*part, rest[1:size]); same != nil {
				same[0] |= rest[0]
			} else {
				*part = append(*part, rest[:size]...)
				s.length++
			}
			rest = rest[size:]
			b.step()
		}
		group := s.entries[write:]
		size := groupHead
		for p, part := range sorted {
			size += copy(group[size:], part)
			binary.LittleEndian.PutUint32(group[p*partEnd:], uint32(size))
		}
		s.groups[i] = write
		write = toLine(write + uint32(size))
	}
	s.groups[count] = write
	if used := int(write) + behindGroups; used < len(s.entries) {
		s.entries = bytes.Clone(s.entries[:used])
	}
}

// sameName returns the entry among entries with the length and name of sized.
func sameName(entries, sized []byte) []byte {
	for len(entries) > 0 {
		end := headBytes + int(entries[1])
		if bytes.Equal(entries[1:end], sized) {
			return entries
		}
		entries = entries[end:]
	}
	return nil
}

func toLine(n uint32) uint32 { return (n + lineBytes - 1) &^ (lineBytes - 1) }
