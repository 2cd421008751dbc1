package names

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func set(t *testing.T, entries ...string) *Set {
	t.Helper()
	b := NewBuilder(0)
	for _, e := range entries {
		if err := b.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	return b.Set()
}

func has(s *Set, name string) bool { return s.Has(key(name)) }

func key(name string) *Key {
	var k Key
	k.Read(name)
	return &k
}

func TestAnEntryCoversWhatItsFormSays(t *testing.T) {
	for _, tc := range []struct {
		entry string
		in    []string
		out   []string
	}{
		{"example.org", []string{"example.org.", "www.example.org.", "a.b.c.example.org."}, []string{"org.", "notexample.org.", "example.org.net.", "example.com.", "."}},
		{"=example.org", []string{"example.org.", "EXAMPLE.org"}, []string{"www.example.org.", "org."}},
		{"*.example.org", []string{"www.example.org.", "a.b.example.org."}, []string{"example.org.", "org."}},
		{"Example.ORG.", []string{"example.org.", "wWw.eXample.oRg"}, []string{"example.net."}},
		{"bücher.example", []string{"xn--bcher-kva.example.", "www.XN--BCHER-KVA.example."}, []string{"bcher.example."}},
		{"=*.example.org", nil, nil},
		{"org", []string{"org.", "example.org."}, []string{"com.", "."}},
		{"_dmarc.x-.example", []string{"_dmarc.x-.example."}, []string{"x-.example."}},
	} {
		b := NewBuilder(0)
		if err := b.Add(tc.entry); (err != nil) != (tc.in == nil) {
			t.Errorf("Add(%q) = %v", tc.entry, err)
			continue
		}
		s := b.Set()
		for _, n := range tc.in {
			if !has(s, n) {
				t.Errorf("%q does not cover %q", tc.entry, n)
			}
		}
		for _, n := range tc.out {
			if has(s, n) {
				t.Errorf("%q covers %q", tc.entry, n)
			}
		}
	}
}

func TestEscapedDotsDoNotEndALabel(t *testing.T) {
	s := set(t, "example.org")
	for name, want := range map[string]bool{
		`a\.example.org.`:    false,
		`\.example.org.`:     false,
		`a\\.example.org.`:   true, // an escaped backslash, then a separator
		`a\046example.org.`:  false,
		`a\046.example.org.`: true,
		`example.org\.`:      false,
		strings.Repeat(`\001`, 60) + `.example.org.`: true,
	} {
		if has(s, name) != want {
			t.Errorf("Has(%q) = %v", name, !want)
		}
	}
}

func TestSetsOfEverySmallSizeFindTheirNamesAndNoOthers(t *testing.T) {
	for size := range 70 {
		var entries []string
		for i := range size {
			entries = append(entries, fmt.Sprintf("n%d.example.org", i))
		}
		s := set(t, entries...)
		if s.Len() != size {
			t.Fatalf("Len() = %d, want %d", s.Len(), size)
		}
		for i := range size + 3 {
			if got := has(s, fmt.Sprintf("w.n%d.example.org.", i)); got != (i < size) {
				t.Fatalf("size %d: Has(n%d) = %v", size, i, got)
			}
		}
	}
}

func TestTheWWWRuleTakesPublicWebsitesOnly(t *testing.T) {
	for name, want := range map[string]bool{
		"www.example.org.": true, "WWW.Example.ORG.": true, "www2.example.org": true, "www10.example.co.uk.": true,
		"www.a.b.example.org.": true, "www.xn--bcher-kva.example.": true,

		"example.org.": false, "www.": false, "www.org.": false, "wwwfoo.example.org.": false, "www-2.example.org.": false,
		"ww.example.org.": false, "a.www.example.org.": false, "www2a.example.org.": false, ".": false, "": false,

		"www.printer.local.": false, "www.example.test.": false, "www.corp.internal.": false, "www.home.arpa.": false,
		"www.abcdefgh.onion.": false, "www.router.lan.": false, "www.box.localdomain.": false,

		"www.msftconnecttest.com.": false, "WWW.MSFTNCSI.COM.": false, "www.thinkdifferent.us.": false,
		"www.a.msftncsi.com.": true,

		`www\.example.org.`: false, `www.a\.b.org.`: true, "www." + strings.Repeat(`\001`, 63) + ".example.org.": false,
	} {
		if key(name).IsWWW() != want {
			t.Errorf("IsWWW(%q) = %v", name, !want)
		}
	}
}

// TestAListOfManyNamesIsFoundNameByName compares lookups with a map: names of every length of label, with many labels and
// few, at different depths below each other, some given twice.
func TestAListOfManyNamesIsFoundNameByName(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	want := map[string]Scope{}
	b := NewBuilder(0)
	name := func() string {
		n := ""
		for range 1 + r.IntN(6) {
			label := strings.Repeat(string(rune('a'+r.IntN(3))), 1+r.IntN(20)) + fmt.Sprint(r.IntN(50))
			if r.IntN(8) == 0 {
				label = strings.Repeat("x", 1+r.IntN(maxLabelBytes))
			}
			if n = label + "." + n; r.IntN(3) == 0 {
				break
			}
		}
		return n
	}
	for len(want) < 20_000 {
		n, scope := name(), Self
		if r.IntN(20) == 0 { // few, as everything below them is listed
			scope = Scope(2 + r.IntN(2))
		}
		if len(n) > maxNameBytes {
			continue
		}
		for range 1 + r.IntN(2) {
			if err := b.addName([]byte(n), scope); err != nil {
				t.Fatal(err)
			}
		}
		want[n] |= scope
	}
	s := b.Set()
	if s.Len() != len(want) || len(held(s)) != len(want) {
		t.Fatalf("Len() = %d, holds %d, want %d", s.Len(), len(held(s)), len(want))
	}
	listed := func(n string) bool {
		if want[n]&Self != 0 {
			return true
		}
		for _, start := range dns.Split(n)[1:] {
			if want[n[start:]]&Below != 0 {
				return true
			}
		}
		return false
	}
	found, missed := 0, 0
	try := func(n string) {
		got := has(s, n)
		if got != listed(n) {
			t.Fatalf("Has(%q) = %v", n, got)
		}
		if got {
			found++
		} else {
			missed++
		}
	}
	for n := range want {
		try(n)
		try("w." + n)
		try("q" + n)
		if _, above, _ := strings.Cut(n, "."); above != "" {
			try(above)
		}
	}
	for range 20_000 {
		try(name())
	}
	if found < 10_000 || missed < 10_000 {
		t.Errorf("Found %d, did not find %d: the names are no test", found, missed)
	}
}

func TestNamesAreReadInWordsAsByteByByte(t *testing.T) {
	for length := 1; length <= maxNameBytes; length++ {
		// Bytes around those that mean something: letters' ends, the dot's neighbours, both with the high bit set.
		for _, c := range []byte("a@AZ[`z{-/0\xae\xc1\xda\xff\x00 ") {
			name := bytes.Repeat([]byte{c}, length)
			for i := length % 7; i < length-1; i += 2 + length%11 {
				name[i] = '.'
			}
			if name[0] == '.' {
				name[0] = 'b'
			}
			var inWords, byBytes Key
			inWords.Read(strings.Repeat("y.", 100)) // what is left over from another name does not matter
			inWords.Read(string(name))
			byBytes.readBytes(string(name))
			if inWords.labels != byBytes.labels || inWords.length != byBytes.length || inWords.whole != byBytes.whole ||
				!slices.Equal(inWords.starts[:inWords.labels], byBytes.starts[:byBytes.labels]) ||
				!bytes.Equal(inWords.text[:length], byBytes.text[:length]) || inWords.hashes(nil) != byBytes.hashes(nil) {
				t.Fatalf("%q is read as %q with %d labels, and byte by byte as %q with %d", name,
					inWords.text[:inWords.length], inWords.labels, byBytes.text[:byBytes.length], byBytes.labels)
			}
		}
	}
}
