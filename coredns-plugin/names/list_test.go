package names

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

func parseText(text string) (*List, error) {
	return Parse(strings.NewReader(text), "list", len(text), nil)
}

func TestListsOfEveryFormat(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		listed     int
		in, out    []string
	}{
		{"plain", "example.org\n=exact.example\n*.below.example\n", 3,
			[]string{"a.example.org.", "exact.example.", "a.below.example."}, []string{"a.exact.example.", "below.example."}},
		{"plain with comments, blanks, CRLF, BOM and no final newline", "\ufeff# list\r\n\r\n  example.org\t# comment\r\n#example.net\r\nEXAMPLE.com.",
			2, []string{"example.org.", "example.com."}, []string{"example.net.", "list."}},
		{"one name", "example.org", 1, []string{"example.org."}, []string{"example.net."}},
		{"international", "bücher.example\nПРИМЕР.example\n", 2, []string{"xn--bcher-kva.example.", "xn--e1afmkfd.example."}, nil},
		{"repeated names", "example.org\nexample.org\n=Example.org\n", 1, []string{"a.example.org."}, nil},
		{"scopes of one name add up", "=example.org\n*.example.org\n", 1, []string{"a.example.org.", "example.org."}, nil},
		{"hosts", "127.0.0.1 localhost localhost.localdomain\n::1 ip6-localhost # loopback\n0.0.0.0 a.example b.example\n192.0.2.1\tc.example # x\n", 3,
			[]string{"a.example.", "b.example.", "c.example."}, []string{"x.a.example.", "localhost."}},
		{"empty by intention", "# Allow nothing.\n#allow-empty\n", 0, nil, []string{"example.org."}},
		{"names although it may be empty", "# allow-empty\nexample.org\n", 1, []string{"example.org."}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list, err := parseText(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if list.Names.Len() != tc.listed {
				t.Errorf("list of %d names", list.Names.Len())
			}
			for _, n := range tc.in {
				if !has(list.Names, n) {
					t.Errorf("%s is not listed", n)
				}
			}
			for _, n := range tc.out {
				if has(list.Names, n) {
					t.Errorf("%s is listed", n)
				}
			}
			if list.Terminated != strings.HasSuffix(tc.text, "\n") {
				t.Errorf("Terminated is %v", list.Terminated)
			}
		})
	}
}

func TestBrokenListsAreRefusedWithTheirPlace(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, tc := range []struct {
		name, text, want string
	}{
		{"empty", "", "list: no names in the file"},
		{"comments only", "# a\n\n# b\n", "list: no names in the file"},
		{"hosts of no site", "127.0.0.1 localhost\n", "list: no names in the file"},
		{"two words", "example.org\n  a.example b.example\n", "list:2:12: more than one word"},
		{"address in a plain list", "example.org\n192.0.2.1\n", "list:2:1: found an address"},
		{"a URL", "example.org\nhttp://example.net/\n", `list:2:1: character ':' in "http://example.net/"`},
		{"adblock rule", "example.org\n||example.net^\n", "list:2:1: character '|'"},
		{"wildcard inside", "a.*.example\n", "list:1:1: character '*'"},
		{"leading dot", "example.org\n.example.net\n", "list:2:1: empty label"},
		{"two dots", "example..org\n", "list:1:1: empty label"},
		{"the root", ".\n", "list:1:1: the root"},
		{"only a wildcard", "*.\n", "list:1:1: expected a domain name"},
		{"only an equals sign", "=\n", "list:1:1: expected a domain name"},
		{"NUL bytes", "example.org\n\x00\x00\n", `list:2:1: character '\x00'`},
		{"long label", "a." + long + ".example\n", "list:1:1: label longer than 63 bytes"},
		{"long name", strings.Repeat("a.", 126) + "example\n", "list:1:1: name of 259 bytes"},
		{"long line", "example.org\n" + strings.Repeat("#", maxLineBytes+1) + "\n", "list:2: line longer than"},
		{"impossible international name", "example.org\nxn--ü.example\n", "list:2:1: "},
		{"hosts line without an address", "192.0.2.1 a.example\nb.example c.example\n", `list:2:1: found "b.example"; this is a hosts file`},
		{"hosts line without a name", "192.0.2.1 a.example\n 192.0.2.2\n", "list:2:2: an address without a name"},
		{"hosts line with a bad name", "192.0.2.1 a.example b_.exam!ple\n", "list:1:21: character '!'"},
		{"two words at first", "a.example b.example\n", "list:1:10: more than one word"},
		{"policy zone", "; policy\n$TTL 60\n@ SOA localhost. nobody.invalid. 1 2 3 4 5\na.example A 192.0.2.1\n", "list:2:5: more than one word; expected one name a line, or a hosts file, which has an address first. README.md says how to convert"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list, err := parseText(tc.text)
			if err == nil {
				t.Fatalf("Accepted as a list of %d names", list.Names.Len())
			}
			if !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("Error is %q, want it to begin with %q", err, tc.want)
			}
			var at *Error
			if !errors.As(err, &at) || at.Unwrap() == nil {
				t.Errorf("Error is a %T", err)
			}
		})
	}
}

type failingReader struct{}

var errRead = errors.New("disk is on fire")

func (failingReader) Read([]byte) (int, error) { return 0, errRead }

func TestAReadErrorRefusesTheList(t *testing.T) {
	if _, err := Parse(failingReader{}, "list", 0, nil); !errors.Is(err, errRead) {
		t.Errorf("Error is %v", err)
	}
}

// The same file is read by the tests of `longhaul check`, which has a parser of its own: what one refuses the other does.
func TestListsAreRefusedWhereCheckRefusesThem(t *testing.T) {
	data, err := os.ReadFile("testdata/lists.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name, List string
		RefusedAt  *int `json:"refused_at"` // nil: accepted; 0: the list as a whole
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, tc := range cases {
		_, err := parseText(strings.ReplaceAll(tc.List, "LONG", strings.Repeat("a", 1<<16)))
		var refused *Error
		switch {
		case tc.RefusedAt == nil && err != nil:
			t.Errorf("%s: refused: %v", tc.Name, err)
		case tc.RefusedAt != nil && (!errors.As(err, &refused) || refused.Line != *tc.RefusedAt):
			t.Errorf("%s: %v, expected a refusal at line %d", tc.Name, err, *tc.RefusedAt)
		}
	}
}
