package longhaul

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"strconv"

	"github.com/coredns/caddy"
)

// mostCompared is the largest share of clients, in percent. The box measures a second group of this size beside it.
const mostCompared = 50

// share is the share of clients whose packets pass the box by a packet rule, `jhash ip saddr mod 100 seed SEED < PERCENT` of nft.
// Their responses must be the truth, or a steered name would lead them to the proxy.
type share struct {
	percent uint32 // 0 for none
	seed    uint32
}

// has reports whether the client at source belongs to the share.
func (s share) has(source netip.Addr) bool {
	if s.percent == 0 || !source.IsValid() {
		return false
	}
	// The kernel scales the hash to the modulus (reciprocal_scale in include/linux/kernel.h).
	return uint64(jhash(source.AsSlice(), s.seed))*100>>32 < uint64(s.percent)
}

// parseCompare reads the share in percent and the seed of the hash.
func (cfg *config) parseCompare(c *caddy.Controller, args []string) error {
	if len(args) != 2 {
		return c.ArgErr()
	}
	percent, err := strconv.ParseUint(args[0], 10, 32)
	if err != nil || percent < 1 || percent > mostCompared {
		return c.Errf("'%s' is no share of clients; expected a number of percent from 1 to %d", args[0], mostCompared)
	}
	seed, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil {
		return c.Errf("'%s' is no seed; expected the number in the packet rules", args[1])
	}
	cfg.compare = share{percent: uint32(percent), seed: uint32(seed)}
	return nil
}

// jhash is the kernel's hash of an address (Bob Jenkins' lookup3, include/linux/jhash.h). Whole groups of three words are read
// in the order of the machine, and the rest is read as little-endian.
func jhash(key []byte, seed uint32) uint32 {
	a := 0xdeadbeef + uint32(len(key)) + seed
	b, c := a, a
	for ; len(key) > 12; key = key[12:] {
		a += binary.NativeEndian.Uint32(key)
		b += binary.NativeEndian.Uint32(key[4:])
		c += binary.NativeEndian.Uint32(key[8:])
		a, b, c = jhashMix(a, b, c)
	}
	a += binary.LittleEndian.Uint32(key)
	return jhashFinal(a, b, c)
}

func jhashMix(a, b, c uint32) (uint32, uint32, uint32) {
	a = (a - c) ^ bits.RotateLeft32(c, 4)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 6)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 8)
	b += a
	a = (a - c) ^ bits.RotateLeft32(c, 16)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 19)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 4)
	b += a
	return a, b, c
}

func jhashFinal(a, b, c uint32) uint32 {
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	return (c ^ b) - bits.RotateLeft32(b, 24)
}
