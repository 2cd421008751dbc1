package names

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// testNames returns n different names of about the lengths that lists have.
func testNames(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	tlds := []string{"com", "com", "com", "net", "org", "de", "co.uk", "com.br", "io", "ru"}
	out := make([]string, n)
	for i := range out {
		label := make([]byte, 3+r.IntN(12))
		for j := range label {
			label[j] = byte('a' + r.IntN(26))
		}
		out[i] = fmt.Sprintf("%s%x.%s", label, i%4096, tlds[r.IntN(len(tlds))])
	}
	return out
}

var sizes = []int{1_000, 100_000, 1_000_000}

func BenchmarkHas(b *testing.B) {
	for _, size := range sizes {
		listed := testNames(size)
		builder := NewBuilder(0)
		for _, n := range listed {
			if err := builder.Add(n); err != nil {
				b.Fatal(err)
			}
		}
		s := builder.Set()
		r := rand.New(rand.NewPCG(3, 4))
		hits, misses := make([]string, 1<<16), make([]string, 1<<16)
		for i := range hits {
			n := listed[r.IntN(size)]
			hits[i], misses[i] = "www.cdn."+n+".", "www.cdn.x"+n[1:]+"q."
		}
		for name, queries := range map[string][]string{"hit": hits, "miss": misses} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				b.ReportAllocs()
				found := 0
				for i := 0; b.Loop(); i++ {
					var k Key
					k.Read(queries[i&(1<<16-1)])
					if s.Has(&k) {
						found++
					}
				}
				if (found > 0) != (name == "hit") {
					b.Errorf("Found %d", found)
				}
			})
		}
		b.Logf("%d names: %.1f bytes a name", size, float64(s.Bytes())/float64(s.Len()))
	}
}

func BenchmarkParse(b *testing.B) {
	for _, size := range sizes {
		var text bytes.Buffer
		for _, n := range testNames(size) {
			text.WriteString(n + "\n")
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				if _, err := Parse(bytes.NewReader(text.Bytes()), "list", text.Len(), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
