// Package store keeps DNS responses in few bytes. It knows no plugin, no clock and no policy.
//
// Responses stand packed one behind another in blocks, and an index of numbers leads to them. So a hundred thousand of them
// are a few hundred objects for the garbage collector. Blocks are filled in a ring. What is about to be overwritten stays
// if it was used since, so a full store forgets what nobody asks for.
package store

import (
	"bytes"
	"hash/maphash"
	"sync"
)

const (
	// MaxWire is the largest packed response that is kept, in bytes. A response may have 64 KiB, but few have 4.
	MaxWire = 16 << 10
	// block is the size of a block, in bytes. An offset in it has 16 bits.
	block = 64 << 10
	// indexed is what a response takes in the index, in bytes: key and place, at the usual filling of Go's map. The
	// benchmark measures it.
	indexed = 32
	// slack is the number of blocks that may be there beside twice the live ones, so that a small store is not compacted
	// all the time.
	slack = 2
)

// Store holds responses. Its methods may be called at once.
type Store struct {
	mu    sync.Mutex
	seed  maphash.Seed
	limit int
	// index leads from the hash of a key to the place of its record: the block's number, then the offset. Two keys with one
	// hash overwrite each other.
	index map[uint64]uint32
	// blocks are records, each a header and a packed response. Only the one at end has room at its end.
	blocks [][]byte
	end    int
	// live is the size of the records that the index leads to.
	live int
}

// New returns an empty store that takes at most limit bytes, but at least two blocks.
func New(limit int) *Store {
	return &Store{seed: maphash.MakeSeed(), limit: max(limit, 2*(block+indexed)), index: map[uint64]uint32{}}
}

// Get returns the response to the question of key, with its flags before this call. Its packed form is appended to buf.
func (s *Store) Get(key Key, buf []byte) (Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record, ok := s.find(key)
	if !ok {
		return Answer{}, false
	}
	answer := decode(record)
	record[flagsAt] = byte((answer.Flags | used) &^ Unasked)
	answer.Wire = append(buf, answer.Wire...)
	return answer, true
}

// Peek is Get, but the response does not count as used.
func (s *Store) Peek(key Key, buf []byte) (Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record, ok := s.find(key)
	if !ok {
		return Answer{}, false
	}
	answer := decode(record)
	answer.Wire = append(buf, answer.Wire...)
	return answer, true
}

// Put keeps answer in place of an earlier response to its question. It returns false if the response is too large or has no
// question in it.
func (s *Store) Put(answer Answer) bool {
	key, ok := answer.Key()
	if !ok || len(answer.Wire) > MaxWire {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
	size := header + len(answer.Wire)
	s.makeRoom(size)
	at := len(s.blocks[s.end])
	s.blocks[s.end] = encode(s.blocks[s.end], answer)
	hash := s.hash(key)
	if other, taken := s.index[hash]; taken {
		s.live -= len(s.at(other))
	}
	s.index[hash] = place(s.end, at)
	s.live += size
	return true
}

// Delete forgets the response to the question of key.
func (s *Store) Delete(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
}

// Size returns the bytes that are taken, and the number of responses.
func (s *Store) Size() (taken, answers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken(), len(s.index)
}

// Resize sets the limit. A smaller one takes effect with the next responses, block by block.
func (s *Store) Resize(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = max(limit, 2*(block+indexed))
}

// oldestFirst returns the numbers of the blocks.
func (s *Store) oldestFirst() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	numbers := make([]int, len(s.blocks))
	for i := range numbers {
		numbers[i] = (s.end + 1 + i) % len(numbers)
	}
	return numbers
}

// records appends the live records of a block to buf.
func (s *Store) records(buf []byte, number int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number >= len(s.blocks) {
		return buf
	}
	for at := 0; at < len(s.blocks[number]); {
		record := s.at(place(number, at))
		if s.leadsTo(record, number, at) {
			buf = append(buf, record...)
		}
		at += len(record)
	}
	return buf
}

func (s *Store) taken() int { return len(s.blocks)*block + len(s.index)*indexed }

func (s *Store) hash(key Key) uint64 {
	const odd = 0x9e3779b97f4a7c15
	return maphash.Bytes(s.seed, key.Question) ^ uint64(key.Flags&(DO|CD))*odd
}

func place(number, at int) uint32 { return uint32(number)<<16 | uint32(at) }

// at returns the record at a place.
func (s *Store) at(place uint32) []byte {
	rest := s.blocks[place>>16][place&0xffff:]
	return rest[:header+wireLength(rest)]
}

func (s *Store) find(key Key) ([]byte, bool) {
	place, ok := s.index[s.hash(key)]
	if !ok {
		return nil, false
	}
	record := s.at(place)
	other, ok := decode(record).Key()
	return record, ok && other.Flags == key.Flags && bytes.Equal(other.Question, key.Question)
}

func (s *Store) remove(key Key) {
	if record, ok := s.find(key); ok {
		delete(s.index, s.hash(key))
		s.live -= len(record)
	}
}

// leadsTo returns true if the index leads to the record at this place: it was neither replaced nor removed.
func (s *Store) leadsTo(record []byte, number, at int) bool {
	key, ok := decode(record).Key()
	if !ok {
		return false
	}
	found, ok := s.index[s.hash(key)]
	return ok && found == place(number, at)
}

// makeRoom lets the block at end have room for size bytes.
func (s *Store) makeRoom(size int) {
	if len(s.blocks) > 0 && len(s.blocks[s.end])+size <= block {
		return
	}
	for {
		full := s.taken()+block > s.limit || len(s.blocks) > 0xffff
		wasteful := len(s.blocks)*block > 2*s.live+slack*block
		if len(s.blocks) == 0 || !full && !wasteful {
			s.blocks = append(s.blocks, make([]byte, 0, block))
			s.end = len(s.blocks) - 1
			return
		}
		s.shrink()
		s.end = (s.end + 1) % len(s.blocks)
		// A third of the space that is free on average is more than MaxWire in some block, so this ends.
		s.compact(s.end, full && 3*s.live > 2*block*len(s.blocks))
		if len(s.blocks[s.end])+size <= block {
			return
		}
	}
}

// shrink gives up the last block while the store takes more than its limit.
func (s *Store) shrink() {
	for s.taken() > s.limit && len(s.blocks) > 2 {
		last := len(s.blocks) - 1
		s.forget(last)
		s.blocks[last] = nil
		s.blocks = s.blocks[:last]
		s.end = min(s.end, last-1)
	}
}

// forget removes all records of a block.
func (s *Store) forget(number int) {
	for at := 0; at < len(s.blocks[number]); {
		record := s.at(place(number, at))
		if s.leadsTo(record, number, at) {
			key, _ := decode(record).Key()
			delete(s.index, s.hash(key))
			s.live -= len(record)
		}
		at += len(record)
	}
}

// compact moves the live records of a block to its beginning. With evict, it forgets those that were not used since the last
// time, and all beyond a half of the block.
func (s *Store) compact(number int, evict bool) {
	kept := 0
	whole := s.blocks[number]
	for at := 0; at < len(whole); {
		record := whole[at : at+header+wireLength(whole[at:])]
		from := at
		at += len(record)
		if !s.leadsTo(record, number, from) {
			continue
		}
		key, _ := decode(record).Key()
		if evict && (record[flagsAt]&byte(used) == 0 || kept+len(record) > block/2) {
			delete(s.index, s.hash(key))
			s.live -= len(record)
			continue
		}
		if evict {
			record[flagsAt] &^= byte(used)
		}
		s.index[s.hash(key)] = place(number, kept)
		kept += copy(whole[kept:], record)
	}
	s.blocks[number] = whole[:kept]
}
