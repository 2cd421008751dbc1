package longhaul_test

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// origin is a name server of the tests' own: it answers from a list of records, says NXDOMAIN and no data as one should,
// gives signatures to those that ask for them, and counts.
type origin struct {
	addr    string
	records []dns.RR

	mu    sync.Mutex
	asked map[uint16]int
}

func startOrigin(t testing.TB, zone string) *origin {
	t.Helper()
	o := &origin{asked: map[uint16]int{}}
	for line := range strings.Lines(zone) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		rr, err := dns.NewRR(line)
		if err != nil {
			t.Fatal(err)
		}
		o.records = append(o.records, rr)
	}
	o.addr = serve(t, o)
	return o
}

// serve runs a DNS server on a free port of loopback, over UDP and TCP, until the test ends.
func serve(t testing.TB, h dns.Handler) string {
	t.Helper()
	var udp net.PacketConn
	var tcp net.Listener
	for tcp == nil {
		var err error
		if udp, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if tcp, err = net.Listen("tcp", udp.LocalAddr().String()); err != nil { // taken: the kernel chose it for UDP only
			_ = udp.Close()
		}
	}
	for _, s := range []*dns.Server{{PacketConn: udp, Handler: h}, {Listener: tcp, Handler: h}} {
		var started sync.WaitGroup
		started.Add(1)
		s.NotifyStartedFunc = started.Done
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := s.ActivateAndServe(); err != nil {
				t.Errorf("Test server: %v", err)
			}
		}()
		started.Wait()
		t.Cleanup(func() {
			_ = s.Shutdown()
			<-done
		})
	}
	return udp.LocalAddr().String()
}

// queries is how often the type was asked for.
func (o *origin) queries(qtype uint16) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[qtype]
}

func (o *origin) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	q := r.Question[0]
	o.mu.Lock()
	o.asked[q.Qtype]++
	o.mu.Unlock()

	m := new(dns.Msg).SetReply(r)
	m.RecursionAvailable = true
	opt := r.IsEdns0()
	do := opt != nil && opt.Do()
	if opt != nil {
		m.SetEdns0(1232, do)
	}
	m.Rcode = dns.RcodeNameError
	for name := q.Name; ; {
		target := ""
		for _, rr := range o.records {
			h := rr.Header()
			if !strings.EqualFold(h.Name, name) {
				continue
			}
			m.Rcode = dns.RcodeSuccess
			switch rr := rr.(type) {
			case *dns.RRSIG:
				if do && (rr.TypeCovered == q.Qtype || rr.TypeCovered == dns.TypeCNAME) {
					m.Answer = append(m.Answer, rr)
				}
			case *dns.CNAME:
				m.Answer = append(m.Answer, rr)
				target = rr.Target
			default:
				if h.Rrtype == q.Qtype {
					m.Answer = append(m.Answer, rr)
				}
			}
		}
		if target == "" {
			break
		}
		name = target
	}
	if len(m.Answer) == 0 {
		m.Ns = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: parent(q.Name), Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: 60},
			Ns: "ns.example.", Mbox: "hostmaster.example.", Serial: 1, Refresh: 1, Retry: 1, Expire: 1, Minttl: 60}}
	}
	size := dns.MinMsgSize
	if opt != nil {
		size = int(opt.UDPSize())
	}
	if _, udp := w.RemoteAddr().(*net.UDPAddr); udp {
		m.Truncate(size)
	}
	_ = w.WriteMsg(m)
}

func parent(name string) string {
	if i, end := dns.NextLabel(name, 0); !end {
		return name[i:]
	}
	return "."
}
