package names

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/net/idna"
)

// Scope says which names an entry speaks of. The zero value speaks of none.
type Scope uint8

const (
	// Self is the entry's own name.
	Self Scope = 1 << iota
	// Below is every name under the entry's own, at any depth.
	Below

	scopeMask = Self | Below
)

const (
	maxLabelBytes = 63  // RFC 1035 section 2.3.4
	maxNameBytes  = 253 // 255 on the wire, less the first length byte and the root label
)

var (
	errNoName  = errors.New("expected a domain name, found nothing")
	errRoot    = errors.New("the root stands for every name there is; list the names to steer")
	errAddress = errors.New("found an address; expected a domain name")
)

// appendEntry reads one entry and appends its name to dst in the form sets hold: A-labels, lower case, no final dot.
//
//	example.org     the name and everything below it
//	=example.org    the name only
//	*.example.org   everything below the name, not the name itself
//
// U-labels become A-labels as a resolver would make them (UTS 46, IDNA 2008). Underscores and hyphens are accepted in any
// place, as such names are in use. A final dot changes nothing.
func appendEntry(dst, text []byte) ([]byte, Scope, error) {
	scope := Self | Below
	switch {
	case bytes.HasPrefix(text, []byte("=")):
		scope, text = Self, text[1:]
	case bytes.HasPrefix(text, []byte("*.")):
		scope, text = Below, text[2:]
	}
	dst, err := appendName(dst, text)
	return dst, scope, err
}

// appendName checks one name and appends it to dst as sets hold it. On an error dst comes back as it was.
func appendName(dst, text []byte) ([]byte, error) {
	for _, c := range text {
		if c >= 0x80 {
			ascii, err := idna.Lookup.ToASCII(string(text))
			if err != nil {
				return dst, fmt.Errorf("%q cannot be a domain name: %w", text, err)
			}
			text = []byte(ascii)
			break
		}
	}
	if len(text) == 0 {
		return dst, errNoName
	}
	if len(text) == 1 && text[0] == '.' {
		return dst, errRoot
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	if len(text) > maxNameBytes {
		return dst, fmt.Errorf("name of %d bytes; at most %d are possible", len(text), maxNameBytes)
	}

	start := len(dst)
	label, numeric := 0, true
	for _, c := range text {
		switch {
		case c == '.':
			if label == 0 {
				return dst[:start], fmt.Errorf("empty label in %q", text)
			}
			label, numeric = -1, true
		case 'a' <= c && c <= 'z' || c == '-' || c == '_':
			numeric = false
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
			numeric = false
		case '0' <= c && c <= '9':
		default:
			return dst[:start], fmt.Errorf("character %q in %q; expected letters, digits, '-', '_' and dots", c, text)
		}
		if label++; label > maxLabelBytes {
			return dst[:start], fmt.Errorf("label longer than %d bytes in %q", maxLabelBytes, text)
		}
		dst = append(dst, c)
	}
	if label == 0 {
		return dst[:start], fmt.Errorf("empty label in %q", text)
	}
	// No top-level domain is a number, but every IPv4 address ends in one: the two columns of a file were swapped.
	if numeric {
		return dst[:start], errAddress
	}
	return dst, nil
}
