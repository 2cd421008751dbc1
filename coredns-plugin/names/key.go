package names

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

const maxLabels = 127 // one-byte labels in 255 bytes on the wire, RFC 1035 section 2.3.4

// Key is a name made ready for lookups. It is meant to live on the stack of one query, and to be used by one goroutine.
type Key struct {
	text   [256 + 8]byte    // the end of the name that can be listed at all: lower case, no final dot; then anything
	length int              // bytes of text in use
	starts [maxLabels]uint8 // where each label that begins inside text begins, leftmost first
	labels int              // how many starts are in use
	whole  bool             // text is the whole name, not only its end

	ahead byte // made of what Set.find reads ahead, so that the compiler does not leave the reading out
}

// Read prepares name, given as package dns prints it: any case, with or without the final dot, special bytes escaped as \X
// or \DDD. An escaped dot does not end a label: `a\.example.org` is one label below org, not a name below example.org.
//
// Nearly all names are read eight bytes at a time, in the manner of vector instructions.
func (k *Key) Read(name string) {
	n := len(name)
	if n > 0 && name[n-1] == '.' {
		n--
	}
	if n == 0 || n > maxNameBytes || !k.readText(copy(k.text[:], name[:n])) {
		k.readBytes(name)
	}
}

// readText reads a name of 1 to maxNameBytes bytes that is in text already, without its final dot. It reports false when
// there is an escape in it.
func (k *Key) readText(length int) bool {
	binary.LittleEndian.PutUint64(k.text[length:], 0)
	k.starts[0], k.labels, k.length, k.whole = 0, 1, length, true
	for i := 0; i < length; i += 8 {
		word := binary.LittleEndian.Uint64(k.text[i:])
		if bytesEqual(word, '\\') != 0 {
			return false
		}
		// In a byte without its high bit these carry into that bit from 'A' on, and from behind 'Z' on.
		fromA, behindZ := word&lowBits+('\x80'-'A')*everyByte, word&lowBits+('\x7f'-'Z')*everyByte
		word |= (fromA &^ behindZ &^ word & highBits) >> 2 // the bit by which cases differ
		binary.LittleEndian.PutUint64(k.text[i:], word)
		for dots := bytesEqual(word, '.'); dots != 0 && k.labels < maxLabels; dots &= dots - 1 {
			k.starts[k.labels] = uint8(i + bits.TrailingZeros64(dots)/8 + 1)
			k.labels++
		}
	}
	return true
}

const (
	everyByte = 0x0101010101010101
	highBits  = 0x80 * everyByte
	lowBits   = 0x7f * everyByte
)

// bytesEqual returns the high bits of those bytes of word that are b.
func bytesEqual(word uint64, b byte) uint64 {
	word ^= uint64(b) * everyByte
	return ^(word&lowBits + lowBits | word) & highBits
}

// readBytes reads any name.
func (k *Key) readBytes(name string) {
	*k = Key{}
	n := len(name)
	if n > 0 && name[n-1] == '.' {
		n-- // an escaped final dot (`\.`) leaves a last label that ends in a backslash, which no entry holds
	}
	// Escapes make a printed name longer than any entry: only its last bytes can match one.
	cut := max(0, n-maxNameBytes)
	k.whole = cut == 0
	labelStart := true
	for i := 0; i < n; i++ {
		c := name[i]
		if labelStart && i >= cut && k.labels < maxLabels {
			k.starts[k.labels] = uint8(i - cut)
			k.labels++
		}
		labelStart = c == '.'
		if c == '\\' {
			if i >= cut {
				k.text[i-cut] = c
			}
			i++ // the escaped byte is never a separator; the digits of \DDD are none anyway
			if i >= n {
				break
			}
			c = name[i]
		} else if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if i >= cut {
			k.text[i-cut] = c
		}
	}
	k.length = n - cut
}

// label returns the label at position i, leftmost first, without its dot.
func (k *Key) label(i int) []byte {
	end := k.length
	if i+1 < k.labels {
		end = int(k.starts[i+1]) - 1
	}
	return k.text[k.starts[i]:end]
}

// specialUse are the top-level domains that are not the public web's (RFC 6761 and its registry, ICANN's .internal): names
// there belong to the local network, where a proxy on the far side of nothing only gets in the way.
var specialUse = map[string]struct{}{
	"alt": {}, "arpa": {}, "home": {}, "internal": {}, "intranet": {}, "invalid": {}, "lan": {},
	"local": {}, "localdomain": {}, "localhost": {}, "onion": {}, "test": {},
}

// portalProbes are names beginning with www that operating systems ask only to learn whether a captive portal is in the
// way. Through a proxy the answer would speak of the proxy's own network.
var portalProbes = map[string]struct{}{
	"www.msftconnecttest.com": {}, "www.msftncsi.com": {}, // Windows
	"www.airport.us": {}, "www.appleiphonecell.com": {}, "www.ibook.info": {}, "www.itools.info": {}, "www.thinkdifferent.us": {}, // Apple
}

// IsWWW reports whether the name is that of a public website by its form: the first label is www, or www and digits, at
// least two labels follow, the top-level domain is not set aside for local use, and it is no captive-portal probe.
func (k *Key) IsWWW() bool {
	if !k.whole || k.labels < 3 {
		return false
	}
	first := k.label(0)
	if len(first) < 3 || string(first[:3]) != "www" || strings.Trim(string(first[3:]), "0123456789") != "" {
		return false
	}
	if _, special := specialUse[string(k.label(k.labels-1))]; special {
		return false
	}
	_, probe := portalProbes[string(k.text[:k.length])]
	return !probe
}
