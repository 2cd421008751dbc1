package store

import "encoding/binary"

// Answer is a response with its times, in seconds of Unix time.
type Answer struct {
	// Stored is when it came, and Expires when its TTL ends.
	Stored, Expires uint32
	// Until is when it must not be used any more, though it were stale.
	Until uint32
	Flags Flags
	// Wire is the packed response: its question is the one in lower case, without compression.
	Wire []byte
}

// Flags are what else is known of a response.
type Flags uint8

// The flags. DO and CD are those of the query (RFC 4035 section 3.2), and part of the key.
const (
	DO Flags = 1 << iota
	CD
	used
	// Pushed says that the other end sent the response before anybody asked, and Unasked that nobody has asked since: Get
	// clears it.
	Pushed
	Unasked
	known = DO | CD | used | Pushed | Unasked
)

// Key is what a response answers.
type Key struct {
	// Question is in wire format and lower case: name, type and class.
	Question []byte
	// Flags are DO and CD of the query.
	Flags Flags
}

// Key returns the key of the response, false if its packed form does not begin with one question.
func (a Answer) Key() (Key, bool) {
	question, ok := questionOf(a.Wire)
	return Key{question, a.Flags & (DO | CD)}, ok
}

const (
	dnsHeader = 12
	maxName   = 255
)

// questionOf returns the question of a packed message in wire format. False: there is not exactly one, or it is compressed.
func questionOf(wire []byte) ([]byte, bool) {
	if len(wire) < dnsHeader || binary.BigEndian.Uint16(wire[4:]) != 1 {
		return nil, false
	}
	rest := wire[dnsHeader:]
	for at := 0; at < len(rest) && at < maxName; at += 1 + int(rest[at]) {
		if rest[at] == 0 {
			end := at + 1 + 4
			return rest[:min(end, len(rest))], end <= len(rest)
		}
		if rest[at] > 63 {
			break
		}
	}
	return nil, false
}

// The header of a record: the length of the packed response, the flags, and the times.
const (
	flagsAt = 2
	header  = 2 + 1 + 3*4
)

func wireLength(record []byte) int { return int(binary.LittleEndian.Uint16(record)) }

func encode(buf []byte, a Answer) []byte {
	buf = binary.LittleEndian.AppendUint16(buf, uint16(len(a.Wire)))
	buf = append(buf, byte(a.Flags))
	for _, time := range []uint32{a.Stored, a.Expires, a.Until} {
		buf = binary.LittleEndian.AppendUint32(buf, time)
	}
	return append(buf, a.Wire...)
}

// decode reads a record. The packed response is the record's own.
func decode(record []byte) Answer {
	return Answer{
		Flags:   Flags(record[flagsAt]),
		Stored:  binary.LittleEndian.Uint32(record[3:]),
		Expires: binary.LittleEndian.Uint32(record[7:]),
		Until:   binary.LittleEndian.Uint32(record[11:]),
		Wire:    record[header : header+wireLength(record)],
	}
}
