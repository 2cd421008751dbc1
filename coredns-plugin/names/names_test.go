package names

import (
	"fmt"
	"strings"
	"testing"
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

func has(s *Set, name string) bool {
	k := KeyOf(name)
	return s.Has(&k)
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
		k := KeyOf(name)
		if k.IsWWW() != want {
			t.Errorf("IsWWW(%q) = %v", name, !want)
		}
	}
}
