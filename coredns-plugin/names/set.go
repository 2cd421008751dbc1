package names

import (
	"encoding/binary"
)

// Set is an immutable set of entries. It holds no pointers but those to its three arrays, so the garbage collector has
// nothing to walk in it however many names it holds. The zero value and nil are empty sets.
//
// What a lookup costs is waiting for memory that is not in the processor's own cache, once for each address that is known
// only when the last one has been read. So a set has
//
//   - a filter, a byte for each name, which knows the listed names and all names above them. A query's name is looked for
//     from its end; the first part of it that the filter does not know settles that nothing longer is listed. For most names
//     that are not listed that is one read.
//   - the place of each group of some sixty names, a table small enough to stay in the cache.
//   - the entries, in groups without spare room. The place of an entry in its group can be guessed to a cache line or two, as
//     the parts of a group are of about one length: its lines and the line that tells the exact place are read at once.
type Set struct {
	filter  []uint64
	groups  []uint32 // where each group starts in entries, and one more, for the end of the last
	entries []byte
	// depths has bit n set when some entry has n labels (the last bit: that many or more). A query's "com" is not looked for
	// when nobody listed a name of one label.
	depths uint64
	length int
}

// A group begins with where each of its parts ends, counted from the start of the group, as 32-bit numbers that share a cache
// line. Then come the parts, which the hash of a name chooses among: entries one behind the other, each a byte of hash bits
// and its Scope, a byte of length, and its name. Zeros fill the group up to the next line.
const (
	lineBytes  = 64
	partEnd    = 4 // bytes of a number in the head
	parts      = lineBytes / partEnd
	groupHead  = parts * partEnd
	groupNames = 4 * parts // on average: four names take as many bytes as a line and a bit
	headBytes  = 2         // of an entry, before its name
	// Bytes behind the last group, so that what is read ahead is always there.
	behindGroups = 3 * lineBytes

	wordNames = 8  // names to a word of the filter. With two bits each, one in twenty names not listed passes it.
	deepest   = 63 // the last bit of Set.depths
)

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
	return 8*cap(s.filter) + 4*cap(s.groups) + cap(s.entries)
}

// Has reports whether any entry speaks of the name.
func (s *Set) Has(k *Key) bool {
	if s == nil || s.length == 0 {
		return false
	}
	hash, end := rootHash, k.length
	for i := k.labels - 1; i >= 0; i-- {
		start := int(k.starts[i])
		hash = k.withLabel(hash, start, end)
		end = start - 1
		if s.depths&(1<<min(k.labels-i, deepest)) == 0 {
			continue
		}
		if at, known := filterBits(hash, len(s.filter)); s.filter[at]&known != known {
			return false
		}
		want := Below
		if i == 0 && k.whole {
			want = Self
		}
		if s.find(k, start, hash)&want != 0 {
			return true
		}
	}
	return false
}

// find returns the scope listed for exactly the name that k holds from start on, 0 if it is not listed.
func (s *Set) find(k *Key, start int, hash uint64) Scope {
	at := scale(hash, len(s.groups)-1)
	from, to := int(s.groups[at]), int(s.groups[at+1])
	part := partOf(hash)
	// The processor reads these and the group's head at once, before it knows where the part begins.
	near := s.entries[from+(to-from-groupHead)*part/parts:]
	if len(near) >= behindGroups {
		k.ahead ^= near[0] ^ near[lineBytes] ^ near[2*lineBytes] ^ near[behindGroups-1]
	}
	group := s.entries[from:to]
	begin := uint32(groupHead)
	if part > 0 {
		begin = binary.LittleEndian.Uint32(group[(part-1)*partEnd:])
	}
	rest := group[begin:binary.LittleEndian.Uint32(group[part*partEnd:])]
	name := k.text[start:k.length]
	for len(rest) > 0 {
		end := headBytes + int(rest[1])
		if Scope(rest[0])&^scopeMask == tagOf(hash) && string(rest[headBytes:end]) == string(name) {
			return Scope(rest[0]) & scopeMask
		}
		rest = rest[end:]
	}
	return 0
}

// The bits of a hash: the high ones choose the group and the filter's word, the lowest byte has the part and, with it, the
// tag beside an entry's Scope, and two numbers above it are bits of the filter's word.

// tagOf returns the hash bits that share a byte with an entry's Scope.
func tagOf(hash uint64) Scope { return Scope(hash) &^ scopeMask }

// partOf returns the part of its group that a name is in. An entry's first byte is enough of a hash for it.
func partOf(hash uint64) int { return int(hash >> 2 & (parts - 1)) }

// filterBits returns where a name is in a filter of so many words, and its bits there.
func filterBits(hash uint64, words int) (at int, known uint64) {
	return scale(hash, words), 1<<(hash>>8&63) | 1<<(hash>>14&63)
}
