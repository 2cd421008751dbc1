package names

import (
	"errors"
	"hash/maphash"
	"math/bits"
)

// Set is an immutable set of entries. It holds no pointers but those to its three arrays, so the garbage collector has
// nothing to walk in it however many names it holds. The zero value and nil are empty sets.
//
// It is an open-addressed table with linear probing over an arena of names: a tag of one byte settles nearly every probe
// that is not the name, and only then the name itself is compared.
type Set struct {
	tags  []uint8  // per slot: 0 for a free one, else bits of the name's hash
	slots []uint32 // per slot: where the name starts in arena, shifted left by scopeBits, and its Scope
	arena []byte   // each name as one length byte and its text
	// depths has bit n set when some entry has n labels (the last bit: that many or more). A query's "com" needs no probe
	// when nobody listed a name of one label.
	depths uint64
	length int
}

const (
	maxArenaBytes = 1<<(32-scopeBits) - 1
	deepest       = 63 // the last bit of Set.depths
)

// seed keys the hash for the life of the process, so that nobody can prepare a list whose names all collide.
var seed = maphash.MakeSeed()

var errTooLarge = errors.New("more than 1 GiB of names")

// Len is the number of different names in the set.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return s.length
}

// Bytes is the memory the set holds.
func (s *Set) Bytes() int {
	if s == nil {
		return 0
	}
	return cap(s.tags) + 4*cap(s.slots) + cap(s.arena)
}

// Has reports whether any entry speaks of the name.
func (s *Set) Has(k *Key) bool {
	if s == nil || s.length == 0 {
		return false
	}
	for i := k.labels - 1; i >= 0; i-- {
		if s.depths&(1<<min(k.labels-i, deepest)) == 0 {
			continue
		}
		want := Below
		if i == 0 && k.whole {
			want = Self
		}
		if s.find(k.text[k.starts[i]:k.length])&want != 0 {
			return true
		}
	}
	return false
}

// find returns the scope listed for exactly this name, 0 if it is not listed.
func (s *Set) find(name []byte) Scope {
	for slot, tag := s.probe(name); s.tags[slot] != 0; slot = s.next(slot) {
		if s.tags[slot] != tag {
			continue
		}
		if value := s.slots[slot]; string(s.name(value)) == string(name) {
			return Scope(value) & scopeMask
		}
	}
	return 0
}

// probe returns the slot where the search for name starts and the tag it leaves there.
func (s *Set) probe(name []byte) (slot int, tag uint8) {
	h := maphash.Bytes(seed, name)
	high, _ := bits.Mul64(h, uint64(len(s.tags))) // scales the hash to any table size, without a division
	return int(high), max(uint8(h), 1)
}

func (s *Set) next(slot int) int {
	if slot++; slot < len(s.tags) {
		return slot
	}
	return 0
}

func (s *Set) name(value uint32) []byte {
	start := value >> scopeBits
	length := uint32(s.arena[start])
	return s.arena[start+1 : start+1+length]
}

// Builder collects entries for a Set.
type Builder struct {
	arena  []byte // as Set.arena
	scopes []Scope
}

// NewBuilder returns a builder with room for about textBytes bytes of names.
func NewBuilder(textBytes int) *Builder {
	return &Builder{arena: make([]byte, 0, textBytes)}
}

// Add adds one entry as written (see the README's list of forms).
func (b *Builder) Add(entry string) error {
	return b.addEntry([]byte(entry))
}

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
	start := len(b.arena)
	if start > maxArenaBytes-maxNameBytes-1 {
		return errTooLarge
	}
	arena, scope, err := appendTo(append(b.arena, 0))
	if err != nil {
		b.arena = arena[:start]
		return err
	}
	arena[start] = uint8(len(arena) - start - 1)
	b.arena, b.scopes = arena, append(b.scopes, scope)
	return nil
}

// Len is the number of entries added so far, repeated ones counted each time.
func (b *Builder) Len() int { return len(b.scopes) }

// Set makes the set. The builder must not be used any more: the set takes over its memory.
func (b *Builder) Set() *Set {
	entries := len(b.scopes)
	// Two thirds full: a miss costs about five adjacent tags, and there is always a free slot to end a search.
	size := entries + entries/2 + 1
	s := &Set{tags: make([]uint8, size), slots: make([]uint32, size), arena: b.arena}
	// Names move towards the front of the arena as repeated ones fall out. The write position never passes the read
	// position, so one array serves both.
	read, write := 0, 0
	for _, scope := range b.scopes {
		length := int(b.arena[read])
		name := b.arena[read+1 : read+1+length]
		slot, tag := s.probe(name)
		for ; s.tags[slot] != 0; slot = s.next(slot) {
			if s.tags[slot] == tag && string(s.name(s.slots[slot])) == string(name) {
				s.slots[slot] |= uint32(scope)
				break
			}
		}
		if s.tags[slot] == 0 {
			s.tags[slot] = tag
			s.slots[slot] = uint32(write)<<scopeBits | uint32(scope)
			s.depths |= 1 << min(labelsIn(name), deepest)
			s.length++
			write += copy(b.arena[write:], b.arena[read:read+1+length])
		}
		read += 1 + length
	}
	s.arena = s.arena[:write]
	if spare := cap(s.arena) - write; spare > write/16 {
		s.arena = append(make([]byte, 0, write), s.arena...)
	}
	b.arena, b.scopes = nil, nil
	return s
}

func labelsIn(name []byte) int {
	labels := 1
	for _, c := range name {
		if c == '.' {
			labels++
		}
	}
	return labels
}
