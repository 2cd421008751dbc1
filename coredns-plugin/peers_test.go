package longhaul_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	longhaul "example.org/longhaul/coredns-plugin"

	"github.com/miekg/dns"
)

// A peer is a resolver that stands between our server and the clients, as a home router, a campus or a provider has one.
type peer struct {
	name    string
	program string
	pkg     string // Debian package
	// start runs it in dir on port of 127.0.0.1, forwarding everything to upstream. anchor is the DS record of a signed zone
	// to validate, empty to validate nothing.
	start func(dir string, port int, upstream *net.UDPAddr, anchor string) (config string, args []string)
}

var (
	dnsmasq = peer{"dnsmasq", "dnsmasq", "dnsmasq-base", func(_ string, port int, upstream *net.UDPAddr, _ string) (string, []string) {
		return "", []string{"--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--bind-interfaces",
			"--listen-address=127.0.0.1", fmt.Sprintf("--port=%d", port), fmt.Sprintf("--server=%s#%d", upstream.IP, upstream.Port),
			"--pid-file=", "--user=", "--log-facility=-"}
	}}
	unbound = peer{"unbound", "unbound", "unbound", func(dir string, port int, upstream *net.UDPAddr, anchor string) (string, []string) {
		validate := ""
		if anchor != "" {
			validate = fmt.Sprintf("trust-anchor: %q", anchor)
		}
		return fmt.Sprintf(`
server:
	directory: %q
	chroot: ""
	username: ""
	pidfile: ""
	use-syslog: no
	interface: 127.0.0.1@%d
	access-control: 127.0.0.0/8 allow
	do-not-query-localhost: no
	num-threads: 1
	module-config: "validator iterator"
	%s
remote-control:
	control-enable: no
forward-zone:
	name: "."
	forward-addr: %s@%d
`, dir, port, validate, upstream.IP, upstream.Port), []string{"-d", "-p", "-c", filepath.Join(dir, "config")}
	}}
	bind = peer{"BIND", "named", "bind9", func(dir string, port int, upstream *net.UDPAddr, anchor string) (string, []string) {
		validate := "dnssec-validation no;"
		return fmt.Sprintf(`
options {
	directory %q;
	listen-on port %d { 127.0.0.1; };
	listen-on-v6 { none; };
	forwarders { %s port %d; };
	forward only;
	recursion yes;
	allow-query { 127.0.0.0/8; };
	pid-file none;
	%s
};
controls { };
`, dir, port, upstream.IP, upstream.Port, validate), []string{"-g", "-n", "1", "-c", filepath.Join(dir, "config")}
	}}
)

// run starts the peer and returns its address when it answers. It is stopped when the test ends.
func (p peer) run(t *testing.T, upstream, anchor string) string {
	t.Helper()
	program, err := exec.LookPath(p.program)
	if err != nil { // not every user has it in the path
		program, err = exec.LookPath(filepath.Join("/usr/sbin", p.program))
	}
	if err != nil {
		longhaul.SkipTest(t, fmt.Sprintf("%s is not installed (Debian package %s)", p.program, p.pkg))
	}
	at, err := net.ResolveUDPAddr("udp", upstream)
	if err != nil {
		t.Fatal(err)
	}
	dir, port := t.TempDir(), freePort(t)
	config, args := p.start(dir, port, at, anchor)
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var output safeBuffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &output, &output, dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-exited
		if t.Failed() {
			said := strings.Split(strings.TrimSpace(output.String()), "\n")
			t.Logf("%s said last:\n%s", p.name, strings.Join(said[max(0, len(said)-10):], "\n"))
		}
	})

	addr := fmt.Sprintf("127.0.0.1:%d", port)
	client := dns.Client{Timeout: 200 * time.Millisecond}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		m, _, err := client.Exchange(new(dns.Msg).SetQuestion("awake.example.", dns.TypeTXT), addr)
		if err == nil && m.Rcode == dns.RcodeNameError {
			return addr
		}
		select {
		case <-exited:
			t.Fatalf("%s ended:\n%s", p.name, output.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer:\n%s", p.name, output.String())
		}
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// rotator is a forwarder of the tests' own that does what caches are seen to do: it gives every record the lowest TTL of
// its answer, and another record first each time.
type rotator struct {
	upstream string

	mu    sync.Mutex
	known map[dns.Question]*dns.Msg
	until map[dns.Question]time.Time
	turn  int
}

func runRotator(t *testing.T, upstream string) string {
	t.Helper()
	return serve(t, &rotator{upstream: upstream, known: map[dns.Question]*dns.Msg{}, until: map[dns.Question]time.Time{}})
}

func (c *rotator) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := r.Question[0]
	if time.Now().After(c.until[q]) {
		m, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion(q.Name, q.Qtype), c.upstream)
		if err != nil {
			_ = w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeServerFailure))
			return
		}
		ttl := ^uint32(0)
		for _, rr := range append(slices.Clone(m.Answer), m.Ns...) {
			ttl = min(ttl, rr.Header().Ttl)
		}
		c.known[q], c.until[q] = m, time.Now().Add(time.Duration(ttl)*time.Second)
	}
	m := c.known[q].Copy()
	m.SetRcode(r, m.Rcode)
	var chain, addrs []dns.RR
	for _, rr := range m.Answer {
		rr.Header().Ttl = uint32(time.Until(c.until[q]).Round(time.Second).Seconds())
		if rr.Header().Rrtype == q.Qtype {
			addrs = append(addrs, rr)
		} else {
			chain = append(chain, rr)
		}
	}
	if n := len(addrs); n > 0 {
		addrs = append(slices.Clone(addrs[c.turn%n:]), addrs[:c.turn%n]...)
		c.turn++
	}
	m.Answer = append(chain, addrs...)
	_ = w.WriteMsg(m)
}
