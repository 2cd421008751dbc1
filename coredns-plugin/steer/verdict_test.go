package steer

import "testing"

func TestEachVerdictHasAWordOfItsOwnAndAMeaning(t *testing.T) {
	words := map[string]bool{}
	for v := Steered; v < Verdicts; v++ {
		if v.String() == "" || v.Meaning() == "" || words[v.String()] {
			t.Errorf("Verdict %d: %q, %q", v, v, v.Meaning())
		}
		words[v.String()] = true
	}
}
