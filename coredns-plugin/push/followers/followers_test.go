package followers

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"example.org/longhaul/coredns-plugin/push/wire"
)

var start = time.Unix(1_800_000_000, 0)

// world is a table with a clock.
type world struct {
	*Table
	now time.Time
}

func newWorld() *world { return &world{New(1<<20, start), start} }

func (w *world) ask(client Client, names ...string) {
	for _, name := range names {
		w.Ask(Lookup{Client: client, Name: name, Types: 1}, w.now)
	}
}

// visit is a client's visit of a page, apart from other visits.
func (w *world) visit(client Client, names ...string) {
	w.now = w.now.Add(time.Minute)
	w.ask(client, names...)
}

func (w *world) following(name string) string { return namesOf(w.Following(name)) }

func namesOf(list []Following) string {
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	return strings.Join(names, " ")
}

func client(remote, hash int) Client { return Client{Remote(remote), 1, wire.Hash(hash)} }

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestANameFollowsAnotherForTwoClients(t *testing.T) {
	w := newWorld()
	w.visit(client(0, 1), "page.", "img.", "font.")
	w.visit(client(0, 1), "page.", "img.", "font.")
	expect(t, "one client", w.following("page."), "")
	w.visit(client(0, 2), "page.", "img.")
	expect(t, "two clients", w.following("page."), "img.")
	w.visit(client(1, 1), "page.", "img.", "font.")
	expect(t, "a client of another remote", w.following("page."), "img. font.")
	expect(t, "the second name", w.following("img."), "font.")
	expect(t, "nothing follows the last name", w.following("font."), "")
	expect(t, "an unknown name", w.following("other."), "")
}

func TestHashesOfTwoPeriodsMayBeOneClient(t *testing.T) {
	w := newWorld()
	for period := range 10 {
		w.visit(Client{0, wire.Period(period), wire.Hash(period)}, "page.", "img.")
	}
	expect(t, "one remote, one client a period", w.following("page."), "")
	expect(t, "popular", namesOf(w.Popular(10)), "")
	w.visit(Client{0, 9, 77}, "page.", "img.")
	expect(t, "two in one period", w.following("page."), "img.")
}

func TestNamesFollowWithinTheWindowAlone(t *testing.T) {
	w := newWorld()
	for i := range 3 {
		w.visit(client(0, i), "page.")
		w.now = w.now.Add(window)
		w.ask(client(0, i), "img.")
		w.now = w.now.Add(time.Second)
		w.ask(client(0, i), "late.")
	}
	expect(t, "page", w.following("page."), "img.")
}

func TestAFollowerOfFewLookupsIsNotSent(t *testing.T) {
	w := newWorld()
	w.visit(client(0, 1), "cdn.", "one.")
	w.visit(client(0, 2), "cdn.", "one.")
	for i := range 6 {
		w.visit(client(0, 3+i), "cdn.")
	}
	expect(t, "2 of 8", w.following("cdn."), "one.")
	w.visit(client(0, 20), "cdn.")
	expect(t, "2 of 9", w.following("cdn."), "")
}

func TestRefreshesTeachOnlyWhatFollowsThem(t *testing.T) {
	w := newWorld()
	for i := range 9 {
		w.now = w.now.Add(time.Minute)
		w.Ask(Lookup{client(i, 1), "page.", 1, true}, w.now)
		w.Ask(Lookup{client(i, 1), "known.", 1, true}, w.now)
		if i < 2 {
			w.ask(client(i, 1), "new.")
		}
	}
	expect(t, "page", w.following("page."), "new.")
	expect(t, "popular", namesOf(w.Popular(10)), "")
}

func TestAPageTeachesAtOnceAndFades(t *testing.T) {
	w := newWorld()
	w.Page("page.", []string{"img.", "page.", "cdn."}, 5, w.now)
	expect(t, "page", w.following("page."), "img. cdn.")
	if types := w.Following("page.")[0].Types; types != 5 {
		t.Errorf("Types are %d", types)
	}
	for i := range 5 {
		w.visit(client(0, i), "page.", "img.")
	}
	expect(t, "the names that clients ask", w.following("page."), "img.")
}

func TestPopularNamesAreThoseOfThreeClients(t *testing.T) {
	w := newWorld()
	for i := range 4 {
		w.visit(client(0, i), "often.")
	}
	for i := range 3 {
		w.visit(client(i, 7), "seldom.")
	}
	for range 9 {
		w.visit(client(0, 1), "mine.")
		w.visit(client(0, 1+rand.IntN(2)), "ours.")
	}
	expect(t, "popular", namesOf(w.Popular(10)), "often. seldom.")
	expect(t, "the first", namesOf(w.Popular(1)), "often.")
}

func TestATypeOfTheSameNameIsOneLookup(t *testing.T) {
	w := newWorld()
	if !w.Ask(Lookup{client(0, 1), "page.", 1, false}, w.now) {
		t.Error("The first lookup is none")
	}
	if w.Ask(Lookup{client(0, 1), "page.", 4, false}, w.now.Add(time.Second)) {
		t.Error("The second type is another lookup")
	}
	if asks, types := w.byID[0].asks, w.byID[0].types; asks != 1 || types != 5 {
		t.Errorf("%v lookups, types %d", asks, types)
	}
}

func TestWhatNobodyAsksFadesAway(t *testing.T) {
	w := newWorld()
	for i := range 3 {
		w.visit(client(0, i), "page.", "img.")
	}
	w.now = w.now.Add(half)
	w.ask(client(0, 9), "other.")
	expect(t, "after a week", w.following("page."), "img.")
	w.now = w.now.Add(5 * half)
	w.ask(client(0, 9), "other.")
	if _, names, followers := w.Size(); names != 1 || followers != 0 {
		t.Errorf("After six weeks there are %d names and %d followers", names, followers)
	}
}

func TestAFloodOfNamesForgetsItself(t *testing.T) {
	w := newWorld()
	for i := range 5 {
		w.visit(client(0, i), "page.", "img.")
	}
	most := 0
	for i := range 100_000 {
		if i%20 == 0 {
			w.now = w.now.Add(time.Minute)
		}
		w.ask(client(0, 66), fmt.Sprintf("flood%d.", i))
		taken, _, _ := w.Size()
		most = max(most, taken)
	}
	expect(t, "page", w.following("page."), "img.")
	if most > 1<<20+nameBytes+recentNames*followerBytes {
		t.Errorf("%d bytes were taken", most)
	}
	w.check(t)
}

func TestManyClientsAreBounded(t *testing.T) {
	w := newWorld()
	for i := range 3 * recentClients {
		w.ask(client(0, i), "page.")
		if len(w.recent) > recentClients {
			t.Fatalf("%d clients", len(w.recent))
		}
	}
	w.now = w.now.Add(time.Minute)
	w.ask(client(1, 1), "a.", "b.")
	if len(w.recent) != 1 {
		t.Errorf("%d clients are within the window", len(w.recent))
	}
}

// check fails if the parts of a table do not fit together.
func (w *world) check(t *testing.T) {
	t.Helper()
	followers := 0
	for id, entry := range w.byID {
		if w.ids[entry.text] != uint32(id) {
			t.Fatalf("%s has another number", entry.text)
		}
		for _, f := range entry.followers {
			if int(f.name) >= len(w.byID) || int(f.name) == id {
				t.Fatalf("%s has a follower that is none", entry.text)
			}
		}
		followers += len(entry.followers)
	}
	if len(w.ids) != len(w.byID) || followers != w.followers {
		t.Fatalf("%d of %d names, %d of %d followers", len(w.ids), len(w.byID), followers, w.followers)
	}
}

func TestTheSizeHoldsForAnyOrder(t *testing.T) {
	w := &world{New(1<<16, start), start}
	random := rand.New(rand.NewPCG(1, 2))
	for range 30_000 {
		w.now = w.now.Add(time.Duration(random.IntN(5000)) * time.Millisecond)
		name := func() string { return fmt.Sprintf("%d.", int(random.ExpFloat64()*200)) }
		if random.IntN(20) == 0 {
			w.Page(name(), []string{name(), name()}, 1, w.now)
		} else {
			w.ask(client(random.IntN(3), random.IntN(5)), name())
		}
		if taken, _, _ := w.Size(); taken > 1<<16+4096 {
			t.Fatalf("%d bytes are taken", taken)
		}
	}
	w.check(t)
}

func (w *world) written(t *testing.T) *bytes.Buffer {
	t.Helper()
	var file bytes.Buffer
	if err := w.Write(gob.NewEncoder(&file)); err != nil {
		t.Fatal(err)
	}
	return &file
}

func TestAFileHoldsTheTable(t *testing.T) {
	w := newWorld()
	for i := range 4 {
		w.visit(client(i, i), "page.", "img.", fmt.Sprintf("%d.", i))
	}
	again, err := Read(gob.NewDecoder(w.written(t)), 1<<20, w.now)
	if err != nil {
		t.Fatal(err)
	}
	other := &world{again, w.now}
	other.check(t)
	expect(t, "page", other.following("page."), w.following("page."))
	expect(t, "popular", namesOf(other.Popular(9)), namesOf(w.Popular(9)))
	small, err := Read(gob.NewDecoder(w.written(t)), 2*nameBytes, w.now)
	if err != nil {
		t.Fatal(err)
	}
	if taken, _, _ := small.Size(); taken > 2*nameBytes {
		t.Errorf("%d bytes are taken", taken)
	}
}

func TestATornFileIsAnError(t *testing.T) {
	w := newWorld()
	w.visit(client(0, 1), "page.", "img.")
	text := w.written(t).Bytes()
	for length := range text {
		if _, err := Read(gob.NewDecoder(bytes.NewReader(text[:length])), 1<<20, start); err == nil {
			t.Fatalf("The first %d bytes are read", length)
		}
	}
	for i, bad := range []saved{
		{Names: []savedName{{Text: "a.", Followers: []savedFollower{{Name: 1}}}}},
		{Names: []savedName{{Text: "a."}, {Text: "a."}}},
		{Names: []savedName{{Text: "a.", Followers: make([]savedFollower, mostFollowers+1)}}},
	} {
		var file bytes.Buffer
		if err := gob.NewEncoder(&file).Encode(bad); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(gob.NewDecoder(&file), 1<<20, start); err == nil {
			t.Errorf("File %d is read", i)
		}
	}
}

func TestTheLeastAskedFollowerIsReplaced(t *testing.T) {
	w := newWorld()
	for i := range 3 {
		w.visit(client(0, i), "page.", "img.")
	}
	for i := range 3 * mostFollowers {
		w.visit(client(1, 1), "page.", fmt.Sprintf("%d.", i))
	}
	followers := w.byID[w.ids["page."]].followers
	if len(followers) != mostFollowers || !slices.ContainsFunc(followers, func(f follower) bool { return w.byID[f.name].text == "img." }) {
		t.Errorf("There are %d followers, and img. may be none", len(followers))
	}
}
