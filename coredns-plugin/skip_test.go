package longhaul

import (
	"os"
	"testing"
)

// SkipTest leaves a test out and says why: in its output, and in the file that LONGHAUL_SKIPS names, from which `make test`
// makes its list. With LONGHAUL_REQUIRE_ALL=1 a test that cannot run has failed.
func SkipTest(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("LONGHAUL_REQUIRE_ALL") == "1" {
		t.Fatalf("LONGHAUL_REQUIRE_ALL is set, and %s", reason)
	}
	if path := os.Getenv("LONGHAUL_SKIPS"); path != "" {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(t.Name() + ": " + reason + "\n"); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Skip(reason)
}
