package names

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// The hash of a name is made from its last label on: each step takes one more label to the left, so the hashes of all the
// names that a name is below come on the way to its own. It folds the two halves of a product of the text and a secret, eight
// bytes at a time. Each process draws its own secrets, so nobody can prepare a list, or queries, whose names collide.
var rootHash, hashFactor = rand.Uint64(), rand.Uint64() | 1

// withLabel returns the hash of the name that begins with the label text[start:end], from that of what follows the label.
func (k *Key) withLabel(hash uint64, start, end int) uint64 {
	at := uint8(start) // a type in which no index can be outside of text
	for left := end - start; ; left -= 8 {
		word := binary.LittleEndian.Uint64(k.text[at:])
		if left < 8 {
			// Turned, so that one label of sixteen bytes is not as two of eight.
			return fold(bits.RotateLeft64(hash, 17), word&(1<<(uint(left)*8&63)-1))
		}
		hash = fold(hash, word)
		at += 8
	}
}

func fold(hash, word uint64) uint64 {
	high, low := bits.Mul64(hash^word, hashFactor)
	return high ^ low
}

// scale maps a hash to a number below n without a division. It uses the high bits of the hash.
func scale(hash uint64, n int) int {
	high, _ := bits.Mul64(hash, uint64(n))
	return int(high)
}
