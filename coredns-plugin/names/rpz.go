package names

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// policy says what one record of a response policy zone asks for.
type policy uint8

const (
	noPolicy    policy = iota // cut off: package dns reads a record without data as one
	otherPolicy               // blocks the name, or is no policy at all (SOA, NS, TXT)
	steer                     // local data: an address or another name in place of the truth
	exempt                    // the name is exempt from the zone's own policy
)

// policyOf reads the policy of a record. Blocking a name (CNAME to the root or to a wildcard, rpz-drop and the like) is
// another plugin's trade: such a name is not steered, as if it were not listed.
func policyOf(rr dns.RR) policy {
	switch rr := rr.(type) {
	case *dns.A:
		if rr.A != nil {
			return steer
		}
		return noPolicy
	case *dns.AAAA:
		if rr.AAAA != nil {
			return steer
		}
		return noPolicy
	case *dns.CNAME:
		target := strings.ToLower(rr.Target)
		switch {
		case target == "":
			return noPolicy
		case target == "rpz-passthru.":
			return exempt
		case target == ".", target == "*.", strings.HasPrefix(target, "rpz-") && strings.Count(target, ".") == 1:
			return otherPolicy
		}
		return steer
	}
	return otherPolicy
}

var errNoData = errors.New("no data behind the type")

var errNoSOA = errors.New("expected one name a line, or a hosts file, which has an address first, or a response policy zone, which begins with its SOA record")

// zone reads the rest of the input as the zone file of a response policy zone. first is its first line, already read.
func (p *parser) zone(first []byte) error {
	linesBefore := p.line - 1
	in := &lineCounter{head: bytes.NewReader(bytes.Clone(first)), tail: p.in, lines: linesBefore}
	zp := dns.NewZoneParser(in, ".", "")

	origin := ""
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		owner := rr.Header().Name
		p.line = in.line()
		if origin == "" {
			if rr.Header().Rrtype != dns.TypeSOA {
				p.line = linesBefore + 1
				return p.fail(0, errNoSOA)
			}
			origin = dns.CanonicalName(owner)
		}
		if err := p.record(rr, origin); err != nil {
			return p.fail(0, fmt.Errorf("record of %q: %w", owner, err))
		}
	}
	if err := zp.Err(); err != nil {
		if origin == "" { // most likely never meant to be a zone
			p.line = linesBefore + 1
			err = fmt.Errorf("%w (as a zone file: %w)", errNoSOA, err)
			return p.fail(0, err)
		}
		return p.zoneError(err, linesBefore)
	}
	if origin == "" {
		p.line = linesBefore + 1
		return p.fail(0, errNoSOA)
	}
	p.line, p.terminated = in.line(), in.last == '\n'
	return nil
}

// record takes over one record. In a response policy zone example.org speaks of that name only and *.example.org of those
// below it, each written below the zone's own name.
func (p *parser) record(rr dns.RR, origin string) error {
	owner := dns.CanonicalName(rr.Header().Name)
	if owner == origin {
		return nil
	}
	trigger, inZone := strings.CutSuffix(owner, "."+strings.TrimPrefix(origin, "."))
	if !inZone {
		return fmt.Errorf("outside of the zone %q", origin)
	}
	to := p.listed
	switch policyOf(rr) {
	case noPolicy:
		return errNoData
	case otherPolicy:
		p.ignored++
		return nil
	case exempt:
		to = p.exempt
	}
	// Triggers other than query names end in a label of their own: 24.0.2.0.192.rpz-client-ip.
	if kind := trigger[strings.LastIndexByte(trigger, '.')+1:]; strings.HasPrefix(kind, "rpz-") {
		p.ignored++
		return nil
	}
	if below, wildcard := strings.CutPrefix(trigger, "*."); wildcard {
		return to.addName([]byte(below), Below)
	}
	return to.addName([]byte(trigger), Self)
}

// zonePosition finds the position that package dns puts at the end of a parse error's text and nowhere else.
var zonePosition = regexp.MustCompile(`^(?:dns: )?(.*) at line: (\d+):(\d+)$`)

func (p *parser) zoneError(err error, linesBefore int) error {
	found := zonePosition.FindStringSubmatch(err.Error())
	if found == nil {
		return p.fail(0, err)
	}
	line, _ := strconv.Atoi(found[2])
	column, _ := strconv.Atoi(found[3])
	p.line = linesBefore + line
	return p.fail(column, errors.New(found[1]))
}

// lineCounter is the text of a zone. It is an io.ByteReader because package dns then takes from it only what it has come to,
// where it would read ahead otherwise: no other way leads to the line that a record stands in.
type lineCounter struct {
	head  *bytes.Reader // a line that was read before
	tail  io.ByteReader
	lines int // that have ended
	last  byte
}

func (l *lineCounter) ReadByte() (byte, error) {
	c, err := l.head.ReadByte()
	if err != nil {
		if c, err = l.tail.ReadByte(); err != nil {
			return 0, err
		}
	}
	if l.last = c; c == '\n' {
		l.lines++
	}
	return c, nil
}

// Read is never called.
func (l *lineCounter) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// line is the line of what was read last, the last one of a record that takes several.
func (l *lineCounter) line() int {
	if l.last == '\n' {
		return l.lines
	}
	return l.lines + 1
}
