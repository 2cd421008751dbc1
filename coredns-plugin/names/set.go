package names

import (
	"bytes"
	"errors"
	"hash/maphash"
	"math"
	"math/bits"
)

// Set is an immutable set of entries. It holds no pointers but those to its two arrays, so the garbage collector has nothing
// to walk in it however many names it holds. The zero value and nil are empty sets.
//
// It is a hash table whose buckets lie one behind the other in one array of bytes, without spare room: each entry is a byte
// of hash bits and its Scope, a byte of length, and its name. What a look-up costs is memory out of the processor's cache:
// most names that are not listed are settled by the filter of their bucket, in the smaller array, and a name that is listed
// by that and the few names of its bucket, which share a cache line or two.
type Set struct {
	buckets []bucket // and one more, for the end of the last
	entries []byte
	// depths has bit n set when some entry has n labels (the last bit: that many or more). A query's "com" needs no probe
	// when nobody listed a name of one label.
	depths uint64
	length int
}

type bucket struct {
	start  uint32 // in entries; it ends where the next one starts
	filter uint32 // for each name in it, the bit that its hash chooses
}

const (
	// More names to a bucket make the table smaller and look-ups longer. With four, one in nine names that are not listed
	// passes the filter.
	meanBucket  = 4
	bucketBytes = 8
	deepest     = 63 // the last bit of Set.depths
	headBytes   = 2  // of an entry, before its name
)

// seed keys the hash for the life of the process, so that nobody can prepare a list whose names all collide.
var seed = maphash.MakeSeed()

var errTooLarge = errors.New("more than 4 GiB of names")

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
	return bucketBytes*cap(s.buckets) + cap(s.entries)
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
	at, filter, tag := home(name, len(s.buckets)-1)
	if s.buckets[at].filter&filter == 0 {
		return 0
	}
	rest := s.entries[s.buckets[at].start:s.buckets[at+1].start]
	for len(rest) > 0 {
		end := headBytes + int(rest[1])
		if Scope(rest[0])&^scopeMask == tag && string(rest[headBytes:end]) == string(name) {
			return Scope(rest[0]) & scopeMask
		}
		rest = rest[end:]
	}
	return 0
}

// home returns where a name's bucket is among so many, its bit in the bucket's filter, and the hash bits that share a byte
// with its scope.
func home(name []byte, buckets int) (at int, filter uint32, tag Scope) {
	h := maphash.Bytes(seed, name)
	high, _ := bits.Mul64(h, uint64(buckets)) // scales the hash to any number, without a division
	return int(high), 1 << (h >> 8 & 31), Scope(h) &^ scopeMask
}

// Builder collects entries for a Set.
type Builder struct {
	entries []byte // as Set.entries, in the order they came in, without hash bits
	length  int
	// giveWay, if not nil, is called for every giveWayNames names in each step of the work.
	giveWay func()
	steps   int
}

// giveWayNames take about a tenth of a millisecond.
const giveWayNames = 1024

func (b *Builder) step() {
	if b.steps++; b.steps%giveWayNames == 0 && b.giveWay != nil {
		b.giveWay()
	}
}

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
	if start > math.MaxUint32-headBytes-maxNameBytes {
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
	count := b.length/meanBucket + 1
	s := &Set{buckets: make([]bucket, count+1), entries: make([]byte, len(b.entries))}
	// How many bytes each bucket takes, then where each ends when they lie one behind the other.
	for rest := b.entries; len(rest) > 0; {
		end := headBytes + int(rest[1])
		at, filter, _ := home(rest[headBytes:end], count)
		s.buckets[at].start += uint32(end)
		s.buckets[at].filter |= filter
		s.depths |= 1 << min(labelsIn(rest[headBytes:end]), deepest)
		rest = rest[end:]
		b.step()
	}
	ends := uint32(0)
	for i := range s.buckets {
		ends += s.buckets[i].start
		s.buckets[i].start = ends
	}
	// Filled from their ends, they start where they should when all entries are in place.
	for rest := b.entries; len(rest) > 0; {
		end := headBytes + int(rest[1])
		at, _, tag := home(rest[headBytes:end], count)
		s.buckets[at].start -= uint32(end)
		entry := s.entries[s.buckets[at].start:]
		copy(entry, rest[:end])
		entry[0] |= byte(tag)
		rest = rest[end:]
		b.step()
	}
	b.merge(s)
	return s
}

// merge makes one entry of those with the same name, which are in the same bucket, and counts what is left.
func (b *Builder) merge(s *Set) {
	write := uint32(0)
	for i := range len(s.buckets) - 1 {
		rest := s.entries[s.buckets[i].start:s.buckets[i+1].start]
		start := write
		for len(rest) > 0 {
			end := headBytes + int(rest[1])
			if same := sameName(s.entries[start:write], rest[1:end]); same != nil {
				same[0] |= rest[0]
			} else {
				write += uint32(copy(s.entries[write:], rest[:end]))
				s.length++
			}
			rest = rest[end:]
			b.step()
		}
		s.buckets[i].start = start
	}
	s.buckets[len(s.buckets)-1].start = write
	if int(write) < len(s.entries) {
		s.entries = bytes.Clone(s.entries[:write])
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

func labelsIn(name []byte) int { return bytes.Count(name, []byte(".")) + 1 }
