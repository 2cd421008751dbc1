package followers

import (
	"math"
	"slices"
	"time"
)

// decay lets what was learned fade, once an hour. What has faded is forgotten.
func (t *Table) decay(now time.Time) {
	age := now.Sub(t.decayed)
	switch {
	case age < 0:
		// The clock was set back.
		t.decayed = now
		return
	case age < time.Hour:
		return
	}
	t.decayed = now
	factor := float32(math.Exp2(-age.Hours() / half.Hours()))
	for id := range t.byID {
		entry := &t.byID[id]
		entry.asks *= factor
		for at := range entry.followers {
			entry.followers[at].count *= factor
		}
	}
	t.forget(leastCount)
}

// makeRoom forgets the least asked names, until a tenth of the limit is free. A flood of names is forgotten first, because
// each of them was asked once.
func (t *Table) makeRoom() {
	for least := float32(leastCount); ; least *= 2 {
		t.forget(least)
		if taken, _, _ := t.Size(); taken <= t.limit-t.limit/10 {
			return
		}
	}
}

// forget removes followers that count less than least, and names that are asked less and follow no other name.
func (t *Table) forget(least float32) {
	needed := make([]bool, len(t.byID))
	t.followers = 0
	for id := range t.byID {
		entry := &t.byID[id]
		entry.followers = slices.DeleteFunc(entry.followers, func(f follower) bool { return f.count < least })
		t.followers += len(entry.followers)
		needed[id] = needed[id] || entry.asks >= least || len(entry.followers) > 0
		for _, f := range entry.followers {
			needed[f.name] = true
		}
	}
	moved := make([]uint32, len(t.byID))
	left := t.byID[:0:0]
	for id, entry := range t.byID {
		if needed[id] {
			moved[id] = uint32(len(left))
			left = append(left, entry)
		} else {
			delete(t.ids, entry.text)
		}
	}
	for id := range left {
		t.ids[left[id].text] = uint32(id)
		for at := range left[id].followers {
			f := &left[id].followers[at]
			f.name = moved[f.name]
		}
	}
	t.byID = left
	// The numbers of the names are others now.
	clear(t.recent)
}
