package longhaul_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"

	"example.org/longhaul/coredns-plugin/browsers"
)

func readme(t *testing.T) string { return text(t, "README.md") }

func text(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks are the fenced blocks of a file in a language.
func blocks(t *testing.T, path, language string) (found []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^~~~ "+language+"\n(.*?)^~~~$").FindAllStringSubmatch(text(t, path), -1) {
		found = append(found, m[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s has no block in %s", path, language)
	}
	return found
}

func TestReadmeHasTheSectionsOfAManPageInOrder(t *testing.T) {
	var got []string
	for line := range strings.Lines(readme(t)) {
		if section, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			got = append(got, section)
		}
	}
	if want := "Name Description Syntax Metrics Ready Examples Bugs See Also"; strings.Join(got, " ") != want {
		t.Errorf("Sections are %v", got)
	}
}

func TestReadmeExamplesStart(t *testing.T) {
	corefiles := append(blocks(t, "README.md", "corefile"), blocks(t, "../envoy-config/README.md", "corefile")...)
	lists := blocks(t, "README.md", "txt")
	dir := t.TempDir()
	t.Chdir(dir)
	port := dnsserver.Port
	defer func() { dnsserver.Port = port }()
	for i, corefile := range corefiles {
		for name, content := range map[string]string{"allow.txt": lists[len(lists)-1], "except.txt": "bank.example\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// The examples use the plugins' own ports, which may be taken where tests run.
		corefile = strings.Replace(corefile, ".:53 {", ". {", 1)
		corefile = strings.Replace(corefile, "prometheus\n", "prometheus 127.0.0.1:0\n", 1)
		corefile = strings.Replace(corefile, "ready\n", "ready 127.0.0.1:"+strconv.Itoa(freePort(t))+"\n", 1)
		dnsserver.Port = strconv.Itoa(freePort(t))
		instance, err := caddy.Start(caddy.CaddyfileInput{Filepath: "Corefile", ServerTypeName: "dns", Contents: []byte(corefile)})
		if err != nil {
			t.Errorf("Example %d does not start: %v\n%s", i+1, err, corefile)
			continue
		}
		if err := instance.Stop(); err != nil {
			t.Error(err)
		}
		for _, err := range instance.ShutdownCallbacks() {
			t.Error(err)
		}
	}
}

// TestReadmeListsWhatTheCodeHas keeps the README complete: every property of the syntax and every metric.
func TestReadmeListsWhatTheCodeHas(t *testing.T) {
	documented := readme(t)
	for file, pattern := range map[string]string{"parse.go": `(?m)^\t"(\w+)":\s`, "metrics.go": `Name:\s+"(\w+)"`} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(pattern).FindAllSubmatch(source, -1)
		if len(names) < 5 {
			t.Fatalf("Found only %d names in %s", len(names), file)
		}
		for _, m := range names {
			name := "`" + string(m[1]) + "`"
			if file == "metrics.go" {
				name = "`coredns_longhaul_" + string(m[1]) + "{"
			}
			if !strings.Contains(documented, name) {
				t.Errorf("The README does not mention %s", name)
			}
		}
	}
	syntax := []byte(blocks(t, "README.md", "txt")[0])
	source, err := os.ReadFile("parse.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t"(\w+)":\s`).FindAllSubmatch(source, -1) {
		if !bytes.Contains(syntax, append([]byte("\n    "), m[1]...)) {
			t.Errorf("The syntax lacks %s", m[1])
		}
	}
}

func TestReadmeHasEveryOutcomeOfAFirstVisit(t *testing.T) {
	for o := range browsers.Outcomes {
		if !strings.Contains(readme(t), "| `"+o.String()+"` |") {
			t.Errorf("the table of first visits lacks %s", o)
		}
	}
}
