package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// response returns a packed response with addresses, about as long as that of a site behind a delivery network.
func response(t testing.TB, name string, qtype uint16, addresses int) []byte {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.Id, m.Response, m.RecursionAvailable, m.Compress = 0, true, true, true
	target := "d" + fmt.Sprintf("%08x", len(name)*7919) + ".edge.example.net."
	records := []string{name + " 300 IN CNAME " + target}
	for i := range addresses {
		if qtype == dns.TypeAAAA {
			records = append(records, fmt.Sprintf("%s 60 IN AAAA 2001:db8::%x", target, i+1))
		} else {
			records = append(records, fmt.Sprintf("%s 60 IN A 203.0.113.%d", target, i+1))
		}
	}
	for _, text := range records {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		m.Answer = append(m.Answer, rr)
	}
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

func answer(t testing.TB, name string, flags Flags) Answer {
	t.Helper()
	return Answer{Stored: 1000, Expires: 1060, Until: 5000, Flags: flags, Wire: response(t, name, dns.TypeA, 2)}
}

func key(t testing.TB, a Answer) Key {
	t.Helper()
	key, ok := a.Key()
	if !ok {
		t.Fatal("no question")
	}
	return key
}

func same(a, b Answer) bool {
	return a.Stored == b.Stored && a.Expires == b.Expires && a.Until == b.Until && a.Flags&^used == b.Flags&^used && bytes.Equal(a.Wire, b.Wire)
}

func TestAnAnswerIsFoundByItsQuestionAndFlagsAlone(t *testing.T) {
	s := New(1 << 20)
	plain, signed := answer(t, "www.example.org.", 0), answer(t, "www.example.org.", DO)
	signed.Until = 7
	for _, a := range []Answer{plain, signed} {
		if !s.Put(a) {
			t.Fatal("not kept")
		}
	}
	for _, want := range []Answer{plain, signed} {
		if got, ok := s.Get(key(t, want), nil); !ok || !same(got, want) {
			t.Errorf("Got %+v, want %+v", got, want)
		}
	}
	for _, other := range []Key{key(t, answer(t, "ww.example.org.", 0)), key(t, answer(t, "www.example.org.", CD))} {
		if _, ok := s.Get(other, nil); ok {
			t.Errorf("Found %v", other)
		}
	}
	s.Delete(key(t, plain))
	if _, ok := s.Get(key(t, plain), nil); ok {
		t.Error("A removed answer is there")
	}
	if _, answers := s.Size(); answers != 1 {
		t.Errorf("%d answers, want the signed one", answers)
	}
}

func TestALaterAnswerReplacesAnEarlierOne(t *testing.T) {
	s := New(1 << 20)
	for i := range uint32(1000) {
		a := answer(t, "www.example.org.", 0)
		a.Expires = a.Stored + i
		s.Put(a)
		if got, ok := s.Get(key(t, a), nil); !ok || got.Expires != a.Expires {
			t.Fatalf("Got %+v", got)
		}
	}
	if taken, answers := s.Size(); answers != 1 || taken > 4*block {
		t.Errorf("%d answers in %d bytes", answers, taken)
	}
}

func TestTheStoreKeepsItsLimitAndWhatIsUsed(t *testing.T) {
	const limit = 4 * block
	s := New(limit)
	asked := answer(t, "asked.example.org.", 0)
	s.Put(asked)
	for i := range 8_000 {
		s.Put(answer(t, fmt.Sprintf("host%d.example.org.", i), 0))
		if taken, _ := s.Size(); taken > limit+block/2 {
			t.Fatalf("It takes %d bytes after %d answers", taken, i)
		}
		if _, ok := s.Get(key(t, asked), nil); !ok {
			t.Fatalf("The answer in use was forgotten after %d others", i)
		}
	}
	if _, answers := s.Size(); answers < 500 {
		t.Errorf("It holds %d answers alone", answers)
	}
	if _, ok := s.Get(key(t, answer(t, "host0.example.org.", 0)), nil); ok {
		t.Error("An answer that nobody asked for stayed")
	}
	if _, ok := s.Get(key(t, answer(t, "host7999.example.org.", 0)), nil); !ok {
		t.Error("The last answer is missing")
	}
}

func TestNothingIsLostWhileThereIsRoom(t *testing.T) {
	s := New(128 * block)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]Answer{}
	for i := range 10_000 {
		a := answer(t, fmt.Sprintf("host%d.example.org.", random.IntN(1000)), Flags(random.IntN(4)))
		a.Wire = response(t, dnsName(t, a), dns.TypeA, 1+random.IntN(30))
		a.Expires = a.Stored + uint32(i)
		name := fmt.Sprint(key(t, a))
		if random.IntN(8) == 0 {
			s.Delete(key(t, a))
			delete(want, name)
			continue
		}
		s.Put(a)
		want[name] = a
	}
	if _, answers := s.Size(); answers != len(want) {
		t.Errorf("%d answers, want %d", answers, len(want))
	}
	live := 0
	for _, a := range want {
		live += header + len(a.Wire)
		if got, ok := s.Get(key(t, a), nil); !ok || !same(got, a) {
			t.Fatalf("Got %+v, want %+v", got, a)
		}
	}
	if live != s.live {
		t.Errorf("It counts %d live bytes, want %d", s.live, live)
	}
	if taken, _ := s.Size(); taken > 2*live+4*block+len(want)*indexed {
		t.Errorf("It takes %d bytes for %d", taken, live)
	}
}

func dnsName(t testing.TB, a Answer) string {
	m := new(dns.Msg)
	if err := m.Unpack(a.Wire); err != nil {
		t.Fatal(err)
	}
	return m.Question[0].Name
}

func TestASmallerLimitTakesEffect(t *testing.T) {
	s := New(32 * block)
	for i := range 6_000 {
		s.Put(answer(t, fmt.Sprintf("host%d.example.org.", i), 0))
	}
	s.Resize(4 * block)
	for i := range 2000 {
		s.Put(answer(t, fmt.Sprintf("later%d.example.org.", i), 0))
	}
	if taken, answers := s.Size(); taken > 5*block || answers < 100 {
		t.Errorf("%d answers in %d bytes", answers, taken)
	}
	if _, ok := s.Get(key(t, answer(t, "later1999.example.org.", 0)), nil); !ok {
		t.Error("The last answer is missing")
	}
}

func TestUnfitAnswersAreRefused(t *testing.T) {
	s := New(1 << 20)
	for name, wire := range map[string][]byte{
		"empty":         {},
		"cut":           response(t, "www.example.org.", dns.TypeA, 1)[:20],
		"two questions": append([]byte{0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0}, response(t, "www.example.org.", dns.TypeA, 1)[12:]...),
		"compressed":    {0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1},
		"large":         append(response(t, "www.example.org.", dns.TypeA, 1), make([]byte, MaxWire)...),
	} {
		if s.Put(Answer{Wire: wire}) {
			t.Errorf("%s: kept", name)
		}
	}
}

func TestAFileBringsEverythingBackAndIsForItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	s := New(8 << 20)
	const names = 5000
	for i := range names {
		s.Put(answer(t, fmt.Sprintf("host%d.example.org.", i), Flags(i&3)))
	}
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := Load(path, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		want := answer(t, fmt.Sprintf("host%d.example.org.", i), Flags(i&3))
		if got, ok := again.Get(key(t, want), nil); !ok || !same(got, want) {
			t.Fatalf("Got %+v, want %+v", got, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("Mode is %v", info.Mode())
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Error("The temporary file stayed")
	}
	if _, err := Load(path+"x", 8<<20); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Error is %v", err)
	}
}

func TestATornOrChangedFileIsRefused(t *testing.T) {
	s := New(1 << 20)
	for i := range 3 {
		s.Put(answer(t, fmt.Sprintf("host%d.example.org.", i), 0))
	}
	var file bytes.Buffer
	if err := s.write(&file); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	if _, err := read(bytes.NewReader(whole), 1<<20); err != nil {
		t.Fatal(err)
	}
	for length := range len(whole) {
		if _, err := read(bytes.NewReader(whole[:length]), 1<<20); err == nil {
			t.Fatalf("The first %d of %d bytes were taken", length, len(whole))
		}
	}
	for at := range whole {
		changed := bytes.Clone(whole)
		changed[at] ^= 1
		if _, err := read(bytes.NewReader(changed), 1<<20); err == nil {
			t.Fatalf("A change of byte %d was taken", at)
		}
	}
	if _, err := read(bytes.NewReader(append(bytes.Clone(whole), 0)), 1<<20); err == nil {
		t.Error("A byte behind the end was taken")
	}
}

func TestAFailedSaveLeavesTheFileThatIsThere(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "names")
	s := New(1 << 20)
	s.Put(answer(t, "www.example.org.", 0))
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	// A folder in the place of the temporary file: it cannot be removed.
	if err := os.MkdirAll(filepath.Join(path+".new", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(path); err == nil {
		t.Error("Saved")
	}
	if _, err := Load(path, 1<<20); err != nil {
		t.Error(err)
	}
}

func TestManyUseTheStoreAtOnce(t *testing.T) {
	s := New(4 * block)
	path := filepath.Join(t.TempDir(), "names")
	answers := make([]Answer, 2000)
	for i := range answers {
		answers[i] = answer(t, fmt.Sprintf("host%d.example.org.", i), 0)
	}
	var running sync.WaitGroup
	for worker := range 4 {
		running.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 0))
			for range 5000 {
				a := answers[random.IntN(len(answers))]
				question, _ := a.Key()
				switch random.IntN(3) {
				case 0:
					s.Put(a)
				case 1:
					if got, ok := s.Get(question, nil); ok && !same(got, a) {
						t.Errorf("Got %+v, want %+v", got, a)
					}
				default:
					s.Size()
				}
			}
		})
	}
	for range 5 {
		if err := s.Save(path); err != nil {
			t.Error(err)
		}
		if _, err := Load(path, 4*block); err != nil {
			t.Error(err)
		}
	}
	running.Wait()
}

// FuzzRead gives the reader of the file any bytes. It takes a file or refuses it, and what it takes can be used and saved.
func FuzzRead(f *testing.F) {
	s := New(1 << 20)
	s.Put(answer(f, "www.example.org.", 0))
	s.Put(answer(f, "example.net.", DO|CD))
	var file bytes.Buffer
	if err := s.write(&file); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes(), false)
	f.Add(file.Bytes()[:file.Len()-6], true)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, text []byte, sealed bool) {
		if sealed {
			// A right frame, so that the records are reached.
			text = seal(text)
		}
		s, err := read(bytes.NewReader(text), 4*block)
		if err != nil {
			return
		}
		var file bytes.Buffer
		if err := s.write(&file); err != nil {
			t.Fatal(err)
		}
		again, err := read(bytes.NewReader(file.Bytes()), 4*block)
		if err != nil {
			t.Fatal(err)
		}
		_, was := s.Size()
		if _, is := again.Size(); is != was {
			t.Fatalf("%d answers, then %d", was, is)
		}
	})
}

// seal returns text, or its records, as a file with the right checksum.
func seal(text []byte) []byte {
	text = bytes.TrimPrefix(text, []byte(magic))
	out := append([]byte(magic), text...)
	out = append(out, 0, 0)
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

func BenchmarkGet(b *testing.B) {
	s := New(64 << 20)
	answers := make([]Key, 10_000)
	for i := range answers {
		a := answer(b, fmt.Sprintf("host%d.example.org.", i), 0)
		s.Put(a)
		answers[i] = key(b, a)
	}
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, ok := s.Get(answers[i%len(answers)], buf); !ok {
			b.Fatal("lost")
		}
	}
}

// BenchmarkNames measures the memory of 100,000 names.
func BenchmarkNames(b *testing.B) {
	for b.Loop() {
		heap, taken := bytesOfNames(b)
		b.ReportMetric(float64(heap)/(1<<20), "MiB/100k-names")
		b.ReportMetric(float64(taken)/(1<<20), "MiB-counted")
	}
}

// heapOfNames is the heap of 100,000 names. 2026-11-28: 34,009,792 bytes. A resolver of a whole ship knows so many.
const heapOfNames = 34_000_000

// A budget is a quarter above its figure, so that a change which costs memory is a decision.
func TestAHundredThousandNamesKeepTheirBudget(t *testing.T) {
	heap, taken := bytesOfNames(t)
	if heap > heapOfNames+heapOfNames/4 || heap < heapOfNames/2 {
		t.Errorf("100,000 names take %d bytes, the figure is %d", heap, heapOfNames)
	}
	if taken > heap+heap/4 || taken < heap/2 {
		t.Errorf("The store counts %d bytes, and takes %d", taken, heap)
	}
}

// bytesOfNames stores 100,000 names with an A and an AAAA response each. It returns their bytes as the runtime counts them,
// and as the store does.
func bytesOfNames(tb testing.TB) (heap, taken int) {
	tb.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := New(256 << 20)
	for i := range 100_000 {
		name := fmt.Sprintf("static%d.site%05d.example.org.", i%10, i)
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
			s.Put(Answer{Stored: 1000, Expires: 1060, Until: 5000, Wire: response(tb, name, qtype, 2)})
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	taken, answers := s.Size()
	if answers != 200_000 {
		tb.Fatalf("%d answers", answers)
	}
	runtime.KeepAlive(s)
	return int(after.HeapAlloc) - int(before.HeapAlloc), taken
}
