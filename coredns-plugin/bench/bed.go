package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const proxyAddress = "198.51.100.12"

// bed is the state that all servers of a run share: the list, an upstream, and a folder.
type bed struct {
	dir           string
	listed, other []string
	upstream      int // port
	stopUpstream  func()
	servers       []*server
}

// server is one resolver under test.
type server struct {
	name     string
	packages string // Debian packages it needs
	program  string
	steers   bool
	// configure writes the server's files into dir and returns its arguments.
	configure func(b *bed, dir string, port int) ([]string, error)

	unpinned bool // on all processors

	dir     string
	port    int
	cmd     *exec.Cmd
	exited  chan struct{}
	absent  string // the reason why it does not take part
	ready   time.Duration
	rss     float64 // MiB when it was ready
	warmRSS float64 // MiB after the measurement
	qps     map[queryMix][]float64
	cpu     map[queryMix][]float64 // microseconds of processor time for each query
	lost    int
}

func newBed(dir string, listed, other []string) (*bed, error) {
	b := &bed{dir: dir, listed: listed, other: other, servers: contenders()}
	if err := writeLines(b.path("list"), listed, "%s\n"); err != nil {
		return nil, err
	}
	var err error
	b.upstream, b.stopUpstream, err = startUpstream()
	return b, err
}

func (b *bed) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bed) server(name string) *server {
	return b.servers[slices.IndexFunc(b.servers, func(s *server) bool { return s.name == name })]
}

func (b *bed) stop() {
	for _, s := range b.servers {
		s.stop()
	}
	b.stopUpstream()
}

// startAll starts the servers one after the other. Servers that are not installed become absent.
func (b *bed) startAll(only string) error {
	if _, err := exec.LookPath("dnsperf"); err != nil {
		return fmt.Errorf("%w; it is in the Debian package dnsperf", err)
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.path("coredns.bin"), "./cmd/coredns")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build coredns (run this in coredns-plugin): %w\n%s", err, text)
	}
	for _, s := range b.servers {
		s.qps, s.cpu = map[queryMix][]float64{}, map[queryMix][]float64{}
		if only != "" && s.program != coredns && !slices.Contains(strings.Split(only, ","), s.program) {
			s.absent = "not selected"
			continue
		}
		if err := s.start(b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (s *server) start(b *bed) error {
	program := s.program
	if program == coredns {
		program = b.path("coredns.bin")
	} else if path, err := exec.LookPath(program); err == nil {
		program = path
	} else if path, err := exec.LookPath(filepath.Join("/usr/sbin", program)); err == nil { // not in every user's path
		program = path
	} else {
		s.absent = program + " is not installed (Debian package " + s.packages + ")"
		fmt.Printf("%s: absent, %s\n", s.name, s.absent)
		return nil
	}
	var err error
	if s.port, err = freePort(); err != nil {
		return err
	}
	s.dir = b.path(key(s.name))
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return err
	}
	args, err := s.configure(b, s.dir, s.port)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	s.cmd = pinned(0, program, args...)
	if s.unpinned {
		s.cmd = exec.Command(program, args...)
	}
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Dir = log, log, s.dir
	started := time.Now()
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func() {
		defer close(s.exited)
		_ = s.cmd.Wait()
	}()
	if err := s.await(b, 3*time.Minute); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, text)
	}
	s.ready, s.rss = time.Since(started), s.residentMiB()
	fmt.Printf("%s: ready after %.2f s, %.0f MiB\n", s.name, s.ready.Seconds(), s.rss)
	return nil
}

// await returns once the server responds correctly: with the proxy's address for a listed name, if it steers, and
// without it for another name.
func (s *server) await(b *bed, limit time.Duration) error {
	client := dns.Client{Timeout: time.Second}
	last := errors.New("no response yet")
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-s.exited:
			return errors.New("ended")
		default:
		}
		last = nil
		for name, steered := range map[string]bool{"www." + b.listed[1]: s.steers, "www." + b.other[1]: false} {
			m, _, err := client.Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeA), fmt.Sprintf("127.0.0.1:%d", s.port))
			if err != nil {
				last = err
			} else if got := strings.Contains(m.String(), proxyAddress); got != steered || len(m.Answer) == 0 {
				last = fmt.Errorf("%s gets %s", name, m)
			}
		}
		if last == nil {
			return nil
		}
	}
	return fmt.Errorf("no correct response: %w", last)
}

func (s *server) stop() {
	if s.cmd == nil || s.exited == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// residentMiB returns the resident memory of the server's process, or 0 if it cannot be read.
func (s *server) residentMiB() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib / 1024
		}
	}
	return 0
}

// processorTime returns the time that the server's process had on all processors, in seconds.
func (s *server) processorTime() float64 {
	const ticksPerSecond = 100 // the unit for user space, whatever the kernel itself counts in
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	// The program's name may hold anything, so count from behind it: the state, ten numbers, user time, system time.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	kernel, _ := strconv.ParseFloat(fields[12], 64)
	return (user + kernel) / ticksPerSecond
}

// pinned returns a command that runs on one processor. The servers share the first one and the clients use another, so
// that the work of clients does not count as a server's.
func pinned(cpu int, program string, args ...string) *exec.Cmd {
	if runtime.NumCPU() < 2 {
		return exec.Command(program, args...)
	}
	return exec.Command("taskset", append([]string{"-c", strconv.Itoa(cpu), program}, args...)...)
}

func freePort() (int, error) {
	for range 50 {
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := udp.LocalAddr().(*net.UDPAddr).Port
		tcp, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		_ = udp.Close()
		if err == nil {
			return port, tcp.Close()
		}
	}
	return 0, errors.New("found no free port")
}

// startUpstream starts a server that responds from memory: for every name two A, one AAAA and one HTTPS record.
func startUpstream() (port int, stop func(), err error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	data := map[uint16][]string{
		dns.TypeA: {"A 203.0.113.1", "A 203.0.113.2"}, dns.TypeAAAA: {"AAAA 2001:db8:1::1"}, dns.TypeHTTPS: {"HTTPS 1 . alpn=h2,h3"},
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.RecursionAvailable = true
		for _, text := range data[r.Question[0].Qtype] {
			rr, err := dns.NewRR(". 3600 IN " + text)
			if err != nil {
				panic(err)
			}
			rr.Header().Name = r.Question[0].Name
			m.Answer = append(m.Answer, rr)
		}
		_ = w.WriteMsg(m)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ActivateAndServe()
	}()
	return conn.LocalAddr().(*net.UDPAddr).Port, func() {
		_ = server.Shutdown()
		<-done
	}, nil
}
