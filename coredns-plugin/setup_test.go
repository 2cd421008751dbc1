package longhaul

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"

	"example.org/longhaul/coredns-plugin/steer"
)

// writeFile makes a file of the test's own and returns its path.
func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSetupAcceptsWhatTheReadmeSaysAndRefusesTheRest(t *testing.T) {
	list := writeFile(t, "allow.txt", "example.org\n")
	empty := writeFile(t, "empty.txt", "\n# nothing\n")
	broken := writeFile(t, "broken.txt", "example.org\n exa mple.org\n")
	for _, tc := range []struct {
		input string
		err   string // part of the message; empty: accepted
	}{
		{"longhaul " + list + " {\nproxy 198.51.100.12\n}", ""},
		{"longhaul {\nproxy 198.51.100.12 2001:db8::12\nmatch example.org =a.example *.b.example bücher.example\n}", ""},
		{"longhaul {\nproxy 198.51.100.12\nproxy 198.51.100.13\nwww\n}", ""},
		{"longhaul {\nproxy 127.0.0.1\nwww\n}", ""},
		{"longhaul {\nproxy 198.51.100.12\nown pep.example.net\nalpn h2 h3\n}", ""},
		{"longhaul {\nproxy 198.51.100.12\ncanary\n}", ""},
		{"longhaul {\nproxy 198.51.100.12\nwww\nexcept bank.example " + list + "\nexcept more.example\n}", ""},
		{"longhaul {\nproxy 198.51.100.12\nwww\nbypass 192.0.2.0/28 2001:db8::/32 192.0.2.77 ::1\nallow_private 10.0.0.0/8\n}", ""},
		{"longhaul {\nproxy 198.51.100.12\nwww\nmode replace\nflatten\nttl 30s\naaaa pass\nhttps strip\ndnssec break\nreload 0s\n}", ""},
		{"longhaul {\nproxy 198.51.100.12\nwww\nmode prepend\nmax_origin 64\nttl 60s 1h\naaaa nodata\nhttps pass\ndnssec signed\nreload 1m\n}", ""},
		{"longhaul {\nproxy 198.51.100.12\nwww\nhttps nodata\ndnssec skip\nttl 1d\nhealth 80\npause /run/longhaul/pause\n}", ""},
		{"longhaul {\nproxy 198.51.100.12\nwww\nhealth [::1]:8080 100ms\n}", ""},
		{"longhaul {\nproxy 198.51.100.12 198.18.0.0/16\nproxy 2001:db8::12 2001:db8:5::/64\nwww\n}", ""},
		{"longhaul {\nproxy 198.51.100.12\nwww\nintercepted\ninstant 198.18.0.0/15\n}", ""},

		{"longhaul", "no proxy address"},
		{"longhaul " + list, "no proxy address"},
		{"longhaul {\nproxy\n}", "Wrong argument count"},
		{"longhaul {\nproxy pep.example.net\nwww\n}", "'pep.example.net' is no IP address"},
		{"longhaul {\nproxy 198.51.100.12:80\nwww\n}", "is no IP address"},
		{"longhaul {\nproxy 0.0.0.0\nwww\n}", "cannot stand in an answer"},
		{"longhaul {\nproxy 224.0.0.1\nwww\n}", "cannot stand in an answer"},
		{"longhaul {\nproxy fe80::1%eth0\nwww\n}", "cannot stand in an answer"},
		{"longhaul {\nproxy ::ffff:198.51.100.12\nwww\n}", "cannot stand in an answer"},
		{"longhaul {\nproxy 198.51.100.12 198.51.100.12\nwww\n}", "given twice"},
		{"longhaul {\nproxy 198.51.100.12 198.18.0.0/33\nwww\n}", "'198.18.0.0/33' is no range"},
		{"longhaul {\nproxy 198.51.100.12 198.18.0.1/16\nwww\n}", "expected 198.18.0.0/16"},
		{"longhaul {\nproxy 198.51.100.12 198.18.0.0/31\nwww\n}", "fewer than two addresses"},
		{"longhaul {\nproxy 198.51.100.12 198.18.0.0/16 198.19.0.0/16\nwww\n}", "one of each family"},
		{"longhaul {\nproxy 198.51.100.12 2001:db8:5::/64\nwww\n}", "no proxy address of the family of '2001:db8:5::/64'"},
		{"longhaul {\nproxy 198.18.0.0/16\nwww\n}", "no proxy address"},
		{"longhaul {\nproxy 198.51.100.12\nwww\ninstant\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\ninstant on\n}", "'on' is no range"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nintercepted yes\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\n}", "nothing to do"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nwww\n}", "property 'www' given twice"},
		{"longhaul {\nproxy 198.51.100.12\nwww yes\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nmatch\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nmatch exa*mple.org\n}", "character '*'"},
		{"longhaul {\nproxy 198.51.100.12\nmatch 192.0.2.1\n}", "found an address"},
		{"longhaul {\nproxy 198.51.100.12\nmatch .\n}", "the root"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nexcept\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nown\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nown *.example.net\n}", "character '*'"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nalpn h2\n}", "'own NAME'"},
		{"longhaul {\nproxy 198.51.100.12\nown pep.example.net\nalpn spdy\n}", "unknown protocol 'spdy'"},
		{"longhaul {\nproxy 198.51.100.12\nown pep.example.net\nalpn\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nbypass\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nbypass 192.0.2.1/24\n}", "expected 192.0.2.0/24"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nbypass lan\n}", "'lan' is neither"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nallow_private 10.0.0.0/40\n}", "is neither"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nmode append\n}", "expected prepend or replace"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nmode\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nmax_origin 0\n}", "mode replace"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nmax_origin 65\n}", "1 to 64"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nmax_origin\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nmode replace\nmax_origin 2\n}", "no meaning"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nttl split 1d\n}", "'split' is no TTL"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nttl\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nttl 60\n}", "'60' is no TTL"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nttl 0s\n}", "'0s' is no TTL"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nttl 8d\n}", "'8d' is no TTL"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nttl 1500ms\n}", "'1500ms' is no TTL"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nttl 1h 1m\n}", "lower bound first"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nttl 1m 1h 2h\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\naaaa drop\n}", "expected nodata or pass"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nhttps drop\n}", "expected nodata or pass or strip"},
		{"longhaul {\nproxy 198.51.100.12\nwww\ndnssec sign\n}", "expected break or signed or skip"},
		{"longhaul {\nproxy 198.51.100.12\nwww\ncanary on\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nhealth\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nhealth http\n}", "'http' is no listener"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nhealth 0\n}", "port from 1"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nhealth 65536\n}", "is no listener"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nhealth 80 1ms\n}", "at least 100ms"},
		{"longhaul {\nproxy 198.51.100.12\nwww\npause\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nreload -1s\n}", "'-1s' is no duration"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nreload\n}", "Wrong argument count"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nexclude 192.0.2.1\n}", "unknown property 'exclude'"},
		{"longhaul {\nproxy 198.51.100.12\nwww\n}\nlonghaul {\nproxy 198.51.100.12\nwww\n}", "once"},
		{"longhaul " + list + " " + list + " {\nproxy 198.51.100.12\n}", "given twice"},
		{"longhaul /nonexistent/list {\nproxy 198.51.100.12\n}", "/nonexistent/list"},
		{"longhaul {\nproxy 198.51.100.12\nwww\nexcept ./nonexistent\n}", "nonexistent"},
		{"longhaul " + empty + " {\nproxy 198.51.100.12\n}", "empty.txt: no names"},
		{"longhaul " + broken + " {\nproxy 198.51.100.12\n}", "broken.txt:2:5: more than one word"},
	} {
		err := setup(caddy.NewTestController("dns", tc.input))
		switch {
		case tc.err == "" && err != nil:
			t.Errorf("Input %q is refused: %v", tc.input, err)
		case tc.err != "" && err == nil:
			t.Errorf("Input %q is accepted, expected an error with %q", tc.input, tc.err)
		case tc.err != "" && !strings.Contains(err.Error(), tc.err):
			t.Errorf("Input %q gives %q, expected it to contain %q", tc.input, err, tc.err)
		}
	}
}

func TestDefaultsAreThoseOfTheReadme(t *testing.T) {
	l := newPlugin(t, "longhaul {\nproxy 198.51.100.12\nwww\n}", nil)
	want := steer.Policy{MaxOrigin: 4, TTL: steer.TTL{Min: 60, Max: 3600}}
	policy := l.policy
	policy.Place = nil
	if !reflect.DeepEqual(policy, want) {
		t.Errorf("Policy is %+v, want %+v", policy, want)
	}
	if l.canary || len(l.proxy.listeners) > 0 || l.proxy.pause != "" || l.lists.reload != 5*time.Second || l.proxy.interval != time.Second {
		t.Errorf("Defaults are not those of the README: %+v", l)
	}
}

func TestRelativePathsStartFromRoot(t *testing.T) {
	path := writeFile(t, "allow.txt", "example.org\n")
	c := caddy.NewTestController("dns", "longhaul allow.txt {\nproxy 198.51.100.12\nexcept ./except.txt\npause off\n}")
	dnsserver.GetConfig(c).Root = filepath.Dir(path)
	l, err := parse(c)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	if l.lists.files[0].path != path || l.lists.files[1].path != filepath.Join(dir, "except.txt") || l.proxy.pause != filepath.Join(dir, "off") {
		t.Errorf("Paths are %q, %q and %q", l.lists.files[0].path, l.lists.files[1].path, l.proxy.pause)
	}
}
