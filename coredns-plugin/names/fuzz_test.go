package names

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// FuzzParse reads anything as a list. Whatever is accepted holds only names that a resolver could ask for, in the form that
// lookups use, and every one of them is found again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"example.org\n=a.example\n*.b.example # c\n", "\ufeff192.0.2.1 a.example b.example\r\n", "bücher.example\n", "# allow-empty\n",
		"; c\n$ORIGIN rpz.\n", "a b\n", "..\n", "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Parse(bytes.NewReader(text), "list", len(text), nil)
		if err != nil {
			if list != nil || err.Error() == "" {
				t.Fatalf("Refused with %q and a list", err)
			}
			return
		}
		if list.Names.Len() == 0 && !bytes.Contains(text, []byte(allowEmpty)) {
			t.Fatal("Accepted without names")
		}
		names := held(list.Names)
		if len(names) != list.Names.Len() {
			t.Fatalf("Holds %d names and counts %d", len(names), list.Names.Len())
		}
		for _, name := range names {
			if _, ok := dns.IsDomainName(name); !ok || name == "" || strings.ToLower(name) != name || strings.HasSuffix(name, ".") {
				t.Fatalf("Holds %q", name)
			}
			k := key(name)
			scope := list.Names.find(k, 0, k.hashes(nil))
			if scope == 0 || scope&Self != 0 && !has(list.Names, name+".") || scope&Below != 0 && !has(list.Names, "x."+name+".") {
				t.Fatalf("%q with scope %b is not found again", name, scope)
			}
		}
	})
}

// held are the names of a set.
func held(s *Set) (names []string) {
	for i := range len(s.groups) - 1 {
		group := s.entries[s.groups[i]:s.groups[i+1]]
		for rest := group[groupHead:binary.LittleEndian.Uint32(group[groupHead-partEnd:])]; len(rest) > 0; {
			end := headBytes + int(rest[1])
			names = append(names, string(rest[headBytes:end]))
			rest = rest[end:]
		}
	}
	return names
}

// FuzzHas compares lookups with the plainest way to write them: cut the name into labels and look at each suffix.
func FuzzHas(f *testing.F) {
	for _, name := range []string{"www.example.org.", "example.org", `a\.example.org.`, `\\.example.org.`, "EXAMPLE.org.", ".", "", strings.Repeat("a.", 126) + "example.org."} {
		f.Add(name)
	}
	self := map[string]bool{"example.org": true, "exact.example": true, "a": true, "a.a.a.a": true}
	below := map[string]bool{"example.org": true, "below.example": true, "b": true}
	b := NewBuilder(0)
	for name := range self {
		if err := b.addName([]byte(name), Self); err != nil {
			f.Fatal(err)
		}
	}
	for name := range below {
		if err := b.addName([]byte(name), Below); err != nil {
			f.Fatal(err)
		}
	}
	s := b.Set()
	f.Fuzz(func(t *testing.T, name string) {
		// Only what package dns would print as the name of a question.
		wire := make([]byte, 256)
		end, err := dns.PackDomainName(dns.Fqdn(name), wire, 0, nil, false)
		if err != nil {
			return
		}
		name, _, err = dns.UnpackDomainName(wire[:end], 0)
		if err != nil {
			return
		}
		lower := strings.ToLower(name)
		want := self[strings.TrimSuffix(lower, ".")]
		for i, start := range dns.Split(lower) {
			want = want || i > 0 && below[strings.TrimSuffix(lower[start:], ".")]
		}
		if got := has(s, name); got != want {
			t.Fatalf("Has(%q) = %v", name, got)
		}
	})
}
