package longhaul

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/test"

	"example.org/longhaul/coredns-plugin/names"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// watched makes a handler whose list file is looked at every few milliseconds.
func watched(t *testing.T, path string) *Longhaul {
	t.Helper()
	l := newPlugin(t, "longhaul "+path+" {\nproxy 198.51.100.12\nreload 5ms\n}", nil)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	l.lists.start(ctx, &running)
	t.Cleanup(func() { stop(); running.Wait() })
	return l
}

func isListed(l *Longhaul, name string) bool {
	var k names.Key
	k.Read(name)
	return l.lists.listed(&k) && !l.lists.excepted(&k)
}

// eventually waits for a condition that a background task brings about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("Did not happen: %s", what)
		}
	}
}

func overwrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func replace(t *testing.T, path, content string) {
	t.Helper()
	overwrite(t, path+".new", content)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func failures(path string) float64 { return testutil.ToFloat64(reloadFailures.WithLabelValues(path)) }

func TestAChangedListTakesEffectWithoutARestart(t *testing.T) {
	for name, write := range map[string]func(*testing.T, string, string){"written in place": overwrite, "renamed into place": replace} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, "allow.txt", "one.example\n")
			l := watched(t, path)
			if !isListed(l, "www.one.example.") || isListed(l, "two.example.") {
				t.Fatal("The first list is not in use")
			}
			write(t, path, "two.example\nthree.example\n")
			eventually(t, "the second list is in use", func() bool { return isListed(l, "two.example.") })
			if isListed(l, "one.example.") {
				t.Error("A name that was taken off is still listed")
			}
			if n := testutil.ToFloat64(entries.WithLabelValues(path)); n != 2 {
				t.Errorf("Metrics say %v entries", n)
			}
			if failures(path) != 0 {
				t.Error("Metrics say that a reload failed")
			}
		})
	}
}

func TestARefusedListLeavesTheOldOneInUse(t *testing.T) {
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, "n%d.example\n", i)
	}
	for _, tc := range []struct {
		name, good, bad string
	}{
		{"empty", "one.example\n", ""},
		{"comments only", "one.example\n", "# one.example\n"},
		{"broken line", "one.example\n", "two.example\nthis is not a name\n"},
		{"binary", "one.example\n", "two.example\n\x00\x00\x00\n"},
		{"cut off in a line", "one.example\ntwo.example\n", "one.example\ntwo.ex"},
		{"cut off after a line", many.String(), many.String()[:strings.Index(many.String(), "n900.")]},
		{"cut off hosts file", "192.0.2.1 one.example\n", "192.0.2.1 one.example\n192.0.2.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := writeFile(t, "allow.txt", tc.good)
			l := watched(t, path)
			before := l.lists.sets.Load()
			replace(t, path, tc.bad)
			eventually(t, "the refusal is counted", func() bool { return failures(path) == 1 })
			if l.lists.sets.Load() != before {
				t.Error("Another list is in use")
			}
			if refused := testutil.ToFloat64(listRefused.WithLabelValues(path)); refused != 1 {
				t.Errorf("Metrics say %v while the file is refused", refused)
			}
			// It is said once, not at every look.
			time.Sleep(30 * time.Millisecond)
			if failures(path) != 1 {
				t.Errorf("Counted %v times", failures(path))
			}
			replace(t, path, tc.good)
			eventually(t, "the good list is read again", func() bool { return l.lists.sets.Load() != before })
			eventually(t, "no list is refused any more", func() bool {
				return testutil.ToFloat64(listRefused.WithLabelValues(path)) == 0
			})
		})
	}
}

func TestAListMayBeEmptyWhenItSaysSo(t *testing.T) {
	path := writeFile(t, "allow.txt", "one.example\n")
	l := watched(t, path)
	replace(t, path, "# allow-empty\n")
	eventually(t, "the empty list is in use", func() bool { return !isListed(l, "one.example.") })
	replace(t, path, "two.example\n")
	eventually(t, "names are listed again", func() bool { return isListed(l, "two.example.") })
}

func TestAMissingListLeavesTheOldOneInUseAndIsReadWhenItIsBack(t *testing.T) {
	path := writeFile(t, "allow.txt", "one.example\n")
	l := watched(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the failure is counted", func() bool { return failures(path) == 1 })
	if !isListed(l, "one.example.") {
		t.Error("The old list is not in use any more")
	}
	replace(t, path, "two.example\n")
	eventually(t, "the new list is in use", func() bool { return isListed(l, "two.example.") })
	if failures(path) != 1 {
		t.Errorf("Counted %v failures", failures(path))
	}
}

func TestAListWithoutAFinalNewlineMayStaySo(t *testing.T) {
	path := writeFile(t, "allow.txt", "one.example")
	l := watched(t, path)
	replace(t, path, "two.example")
	eventually(t, "the new list is in use", func() bool { return isListed(l, "two.example.") })
}

func TestShortListsMayShrink(t *testing.T) {
	path := writeFile(t, "allow.txt", "one.example\ntwo.example\nthree.example\n")
	l := watched(t, path)
	replace(t, path, "one.example\n")
	eventually(t, "the new list is in use", func() bool { return !isListed(l, "three.example.") })
}

func TestAFileThatIsStillBeingWrittenIsNotRead(t *testing.T) {
	path := writeFile(t, "allow.txt", "one.example\n")
	l := newPlugin(t, "longhaul "+path+" {\nproxy 198.51.100.12\n}", nil)
	f := l.lists.files[0]
	overwrite(t, path, "two.example\n")
	writing, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	written := make(chan struct{})
	writer.Go(func() {
		for i := 0; writing.Err() == nil; i++ {
			overwrite(t, path, strings.Repeat("two.example\n", i%50+2))
			if i == 0 {
				close(written)
			}
		}
	})
	<-written
	// Long enough for the writer to get its turn on a busy machine.
	if f.refresh(t.Context(), 500*time.Millisecond) {
		t.Error("Read while it changed")
	}
	stop()
	writer.Wait()
	if !f.refresh(t.Context(), time.Millisecond) {
		t.Error("Not read after it had settled")
	}
}

func TestExceptFilesAreWatchedToo(t *testing.T) {
	path := writeFile(t, "except.txt", "one.example\n")
	l := newPlugin(t, "longhaul {\nproxy 198.51.100.12\nmatch example\nexcept "+path+"\n}", nil)
	if isListed(l, "one.example.") || !isListed(l, "two.example.") {
		t.Error("The first exceptions are not in use")
	}
	replace(t, path, "two.example\n")
	l.lists.refresh(t.Context())
	if !isListed(l, "one.example.") || isListed(l, "two.example.") {
		t.Error("The second exceptions are not in use")
	}
}

func TestServersOfOneProcessShareAList(t *testing.T) {
	path := writeFile(t, "allow.txt", "one.example\n")
	first := newPlugin(t, "longhaul "+path+" {\nproxy 198.51.100.12\n}", nil)
	second := newPlugin(t, "longhaul "+path+" {\nproxy 198.51.100.13\n}", nil)
	if first.lists.files[0].using != second.lists.files[0].using {
		t.Error("The same version of a file was read twice")
	}
	replace(t, path, "two.example\n")
	first.lists.refresh(t.Context())
	second.lists.refresh(t.Context())
	if first.lists.files[0].using != second.lists.files[0].using || !isListed(second, "two.example.") {
		t.Error("The changed file was read twice, or not at all")
	}
	runtime.KeepAlive(first)
}

func TestAReloadOfCoreDNSTakesAListThatShrank(t *testing.T) {
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, "n%d.example\n", i)
	}
	path := writeFile(t, "allow.txt", many.String())
	corefile := "longhaul " + path + " {\nproxy 198.51.100.12\n}"
	old := newPlugin(t, corefile, nil)
	replace(t, path, "n1.example\n")
	old.lists.refresh(t.Context())
	if !isListed(old, "n2.example.") {
		t.Fatal("The cut list was taken over without being asked to")
	}
	if l := newPlugin(t, corefile, nil); !isListed(l, "n1.example.") || isListed(l, "n2.example.") {
		t.Error("A new server does not use the file as it is")
	}
}

// TestQueriesDuringReloadsSeeOneListOrTheOther is of use with the race detector: queries run while lists change, some of
// them to broken ones.
func TestQueriesDuringReloadsSeeOneListOrTheOther(t *testing.T) {
	path := writeFile(t, "allow.txt", "always.example\na.example\n")
	l := watched(t, path)
	l.Next = answering("a.example. 300 IN A 203.0.113.1")
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	var queries sync.WaitGroup
	for range 4 {
		queries.Go(func() {
			for ctx.Err() == nil {
				if !isListed(l, "always.example.") {
					t.Error("A name of both lists was not listed")
					return
				}
				ask(t, l, question("a.example.", dns.TypeA), &test.ResponseWriter{})
			}
		})
	}
	for i := 0; ctx.Err() == nil; i++ {
		replace(t, path, []string{"always.example\nb.example\n", "always.example\na.example\n", "always.ex", "", "a b\n"}[i%5])
		time.Sleep(4 * time.Millisecond)
	}
	queries.Wait()
}
