package lookups

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ground is a server of gRPC, the stock one, as CoreDNS runs it.
type ground struct {
	pb.UnimplementedDnsServiceServer
	respond func(query *dns.Msg) (*dns.Msg, error)
	asked   atomic.Int32
}

func (g *ground) Query(_ context.Context, in *pb.DnsPacket) (*pb.DnsPacket, error) {
	g.asked.Add(1)
	query := new(dns.Msg)
	if err := query.Unpack(in.GetMsg()); err != nil {
		return nil, err
	}
	m, err := g.respond(query)
	if err != nil {
		return nil, err
	}
	wire, err := m.Pack()
	return &pb.DnsPacket{Msg: wire}, err
}

// listen runs a ground on loopback until the test ends, and returns its address.
func (g *ground) listen(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxConcurrentStreams(250))
	pb.RegisterDnsServiceServer(server, g)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		running.Wait()
	})
	return listener.Addr().String()
}

func answer(query *dns.Msg, address string) *dns.Msg {
	m := new(dns.Msg).SetReply(query)
	rr, err := dns.NewRR(query.Question[0].Name + " 60 IN A " + address)
	if err != nil {
		panic(err)
	}
	m.Answer = []dns.RR{rr}
	return m
}

const byStream, byConnection = "203.0.113.1", "203.0.113.2"

// behind is what stands behind the plugin: the way of today.
type behind struct {
	fails    atomic.Bool
	failures atomic.Int32 // still to come
	asked    atomic.Int32
}

func (*behind) Name() string { return "behind" }

func (b *behind) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	b.asked.Add(1)
	if b.fails.Load() || b.failures.Add(-1) >= 0 {
		return dns.RcodeServerFailure, errors.New("no route")
	}
	return dns.RcodeSuccess, w.WriteMsg(answer(r, byConnection))
}

func newLookups(t *testing.T, address string, next plugin.Handler) *Lookups {
	t.Helper()
	s := newStreams(address)
	h := &Lookups{Next: next, streams: s, hedge: 10 * time.Second, slots: make(chan struct{}, 8), now: time.Now, stopped: t.Context()}
	t.Cleanup(func() {
		h.probes.Wait()
		s.close()
	})
	return h
}

// get returns the address in the response to a query, or the error.
func get(t *testing.T, h *Lookups, name string) string {
	t.Helper()
	r := new(dns.Msg).SetQuestion(name, dns.TypeA)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if _, err := h.ServeDNS(t.Context(), rec, r); err != nil {
		return "error"
	}
	if rec.Msg.Id != r.Id {
		t.Errorf("Identifier is %d, want %d", rec.Msg.Id, r.Id)
	}
	return rec.Msg.Answer[0].(*dns.A).A.String()
}

func responds(query *dns.Msg) (*dns.Msg, error) { return answer(query, byStream), nil }

func TestManyQueriesShareAConnectionAndNoneWaitsForAnother(t *testing.T) {
	release := make(chan struct{})
	g := &ground{respond: func(query *dns.Msg) (*dns.Msg, error) {
		if query.Id != 0 {
			t.Errorf("Identifier %d crossed the link", query.Id)
		}
		if strings.HasPrefix(query.Question[0].Name, "slow") {
			<-release
		}
		return answer(query, byStream), nil
	}}
	next := &behind{}
	h := newLookups(t, g.listen(t), next)
	var clients sync.WaitGroup
	clients.Go(func() { get(t, h, "slow.example.org.") })
	for range 100 {
		clients.Go(func() {
			if got := get(t, h, "www.example.org."); got != byStream {
				t.Errorf("Response is %s", got)
			}
		})
	}
	for g.asked.Load() < 101 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	clients.Wait()
	if next.asked.Load() != 0 {
		t.Errorf("%d queries took connections", next.asked.Load())
	}
}

func TestAGroundWithoutStreamsIsQueriedTheOtherWayAndProbedOnceAMinute(t *testing.T) {
	var old atomic.Bool
	old.Store(true)
	g := &ground{respond: func(query *dns.Msg) (*dns.Msg, error) {
		if old.Load() {
			return nil, status.Error(codes.Unimplemented, "old")
		}
		return answer(query, byStream), nil
	}}
	next := &behind{}
	h := newLookups(t, g.listen(t), next)
	var seconds atomic.Int64
	h.now = func() time.Time { return time.Unix(1_800_000_000+seconds.Load(), 0) }
	for range 5 {
		if got := get(t, h, "www.example.org."); got != byConnection {
			t.Errorf("Response is %s", got)
		}
	}
	if g.asked.Load() != 1 {
		t.Errorf("%d streams, want the first alone", g.asked.Load())
	}
	old.Store(false)
	seconds.Store(60)
	for range 5 {
		get(t, h, "www.example.org.")
		h.probes.Wait()
	}
	if got := get(t, h, "www.example.org."); got != byStream || g.asked.Load() < 3 {
		t.Errorf("Response is %s after %d streams", got, g.asked.Load())
	}
}

func TestALinkThatIsDownIsNoGroundWithoutStreams(t *testing.T) {
	g := &ground{respond: func(*dns.Msg) (*dns.Msg, error) { return nil, status.Error(codes.Unavailable, "down") }}
	next := &behind{}
	next.fails.Store(true)
	h := newLookups(t, g.listen(t), next)
	if got := get(t, h, "www.example.org."); got != "error" {
		t.Errorf("Response is %s", got)
	}
	g.respond = responds
	if got := get(t, h, "www.example.org."); got != byStream {
		t.Errorf("Response is %s", got)
	}
}

func TestTheFailureOfBothWaysIsReturnedAtOnce(t *testing.T) {
	failed := make(chan struct{})
	g := &ground{respond: func(*dns.Msg) (*dns.Msg, error) {
		<-failed
		return nil, status.Error(codes.Unavailable, "no resolver")
	}}
	next := &behind{}
	next.fails.Store(true)
	h := newLookups(t, g.listen(t), next)
	h.hedge = time.Millisecond
	before := testutil.ToFloat64(ways.WithLabelValues("connection"))
	var client sync.WaitGroup
	began := time.Now()
	client.Go(func() {
		if got := get(t, h, "www.example.org."); got != "error" {
			t.Errorf("Response is %s", got)
		}
	})
	for next.asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(failed)
	client.Wait()
	if took := time.Since(began); took >= patience/2 {
		t.Errorf("The failure came after %v", took)
	}
	if counted := testutil.ToFloat64(ways.WithLabelValues("connection")) - before; counted != 0 {
		t.Errorf("%v failures are counted as responses", counted)
	}
}

// cutter resets its first connections after the first bytes of a query, and hands the others to a ground.
func cutter(t *testing.T, to string, cuts int) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for number := 0; ; number++ {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			if number < cuts {
				_, _ = near.Read(make([]byte, 1))
				_ = near.(*net.TCPConn).SetLinger(0)
				_ = near.Close()
				continue
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			running.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
			running.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return listener.Addr().String()
}

func TestAResetCostsOneSilentRetry(t *testing.T) {
	g, next := &ground{respond: responds}, &behind{}
	h := newLookups(t, cutter(t, g.listen(t), 1), next)
	if got := get(t, h, "www.example.org."); got != byStream || next.asked.Load() != 0 {
		t.Errorf("Response is %s, %d queries on connections", got, next.asked.Load())
	}
}

func TestTwoResetsCostTheStreamAndNotTheResponse(t *testing.T) {
	g, next := &ground{respond: responds}, &behind{}
	h := newLookups(t, cutter(t, g.listen(t), 2), next)
	if got := get(t, h, "www.example.org."); got != byConnection {
		t.Errorf("Response is %s", got)
	}
}

func TestAConnectionThatFailsAtOnceIsTriedTwice(t *testing.T) {
	g := &ground{respond: func(*dns.Msg) (*dns.Msg, error) { return nil, status.Error(codes.Unimplemented, "old") }}
	next := &behind{}
	next.failures.Store(1)
	h := newLookups(t, g.listen(t), next)
	if got := get(t, h, "www.example.org."); got != byConnection || next.asked.Load() != 2 {
		t.Errorf("Response is %s after %d queries", got, next.asked.Load())
	}
	next.failures.Store(1)
	if got := get(t, h, "www.example.org."); got != byConnection || next.asked.Load() != 4 {
		t.Errorf("Without streams, response is %s after %d queries", got, next.asked.Load())
	}
	next.failures.Store(2)
	if got := get(t, h, "www.example.org."); got != "error" || next.asked.Load() != 6 {
		t.Errorf("Response is %s after %d queries, want one retry alone", got, next.asked.Load())
	}
}

func TestAServerThatIsNotThereIsNoReasonToWait(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	h := newLookups(t, listener.Addr().String(), &behind{})
	began := time.Now()
	if got := get(t, h, "www.example.org."); got != byConnection || time.Since(began) > time.Second {
		t.Errorf("Response is %s after %s", got, time.Since(began))
	}
}

func TestASlowStreamIsHedgedAndStaysInUse(t *testing.T) {
	release := make(chan struct{})
	g := &ground{respond: func(query *dns.Msg) (*dns.Msg, error) {
		<-release
		return answer(query, byStream), nil
	}}
	h := newLookups(t, g.listen(t), &behind{})
	h.hedge = 20 * time.Millisecond
	if got := get(t, h, "www.example.org."); got != byConnection {
		t.Errorf("Response is %s", got)
	}
	close(release)
	h.hedge = 10 * time.Second
	if got := get(t, h, "www.example.org."); got != byStream {
		t.Errorf("Response is %s", got)
	}
}

func TestAHedgeThatFailsWaitsForTheStream(t *testing.T) {
	release, next := make(chan struct{}), &behind{}
	next.fails.Store(true)
	g := &ground{respond: func(query *dns.Msg) (*dns.Msg, error) {
		<-release
		return answer(query, byStream), nil
	}}
	h := newLookups(t, g.listen(t), next)
	h.hedge = 10 * time.Millisecond
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	if got := get(t, h, "www.example.org."); got != byStream {
		t.Errorf("Response is %s", got)
	}
}

func TestAResponseToAnotherQueryIsRefused(t *testing.T) {
	g := &ground{respond: func(query *dns.Msg) (*dns.Msg, error) {
		query.Question[0].Name = "other.example.org."
		return answer(query, byStream), nil
	}}
	if got := get(t, newLookups(t, g.listen(t), &behind{}), "www.example.org."); got != byConnection {
		t.Errorf("Response is %s", got)
	}
}

func TestALargeResponseIsWhole(t *testing.T) {
	g := &ground{respond: func(query *dns.Msg) (*dns.Msg, error) {
		m := answer(query, byStream)
		for range 240 {
			m.Answer = append(m.Answer, &dns.TXT{Hdr: dns.RR_Header{Name: query.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: 60},
				Txt: []string{strings.Repeat("x", 220)}})
		}
		return m, nil
	}}
	h := newLookups(t, g.listen(t), &behind{})
	if got := get(t, h, "www.example.org."); got != byStream {
		t.Errorf("Response is %s", got)
	}
}

// FuzzUnframe gives the reader of responses any bytes.
func FuzzUnframe(f *testing.F) {
	whole, err := frame(answer(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), byStream))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:7])
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := unframe(text); err == nil && m == nil {
			t.Fatal("neither a message nor an error")
		}
	})
}

func TestParse(t *testing.T) {
	for body, right := range map[string]bool{
		"lookups 127.0.0.1:8157":                                true,
		"lookups 127.0.0.1:8157 {\nhedge 2200ms\nat_once 32\n}": true,
		"lookups":                                       false,
		"lookups 127.0.0.1":                             false,
		"lookups 127.0.0.1:1 127.0.0.1:2":               false,
		"lookups 127.0.0.1:8157 {\nhedge 0s\n}":         false,
		"lookups 127.0.0.1:8157 {\nat_once 0\n}":        false,
		"lookups 127.0.0.1:8157 {\nat_once\n}":          false,
		"lookups 127.0.0.1:8157 {\nretries 2\n}":        false,
		"lookups 127.0.0.1:8157\nlookups 127.0.0.1:815": false,
	} {
		if _, _, err := parse(caddy.NewTestController("dns", body)); (err == nil) != right {
			t.Errorf("%q: %v", body, err)
		}
	}
}
