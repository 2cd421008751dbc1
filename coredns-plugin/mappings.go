package longhaul

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"time"

	"example.org/longhaul/coredns-plugin/browsers"
	"example.org/longhaul/coredns-plugin/unixsocket"
)

// mappings serves, on a Unix socket, the true addresses behind those that names have meanwhile. The program that keeps the
// packet rules reads them: it has rights over the network that this process lacks.
//
// Each line is an address and the true one: `198.18.3.4 203.0.113.9`. It has `-` for a name that has none, and `absent` if
// there is no such name. A connection gets all that are known, and then each as it becomes known. Group and owner may connect.
var mappings mappingServer

// mappingServer is the socket of this process. A reload of the Corefile keeps it.
type mappingServer struct {
	mu       sync.Mutex
	path     string
	table    *browsers.Table
	listener net.Listener
}

const (
	mappingPatience = 5 * time.Second
	// mostKeepers bounds the connections at one time. There is one keeper.
	mostKeepers = 4
)

// serve serves the table at path. It does nothing if it is served there already.
func (s *mappingServer) serve(path string, table *browsers.Table) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil && s.path == path && s.table == table {
		return nil
	}
	s.stop()
	listener, err := unixsocket.Listen(path, 0o660)
	if err != nil {
		return err
	}
	s.path, s.table, s.listener = path, table, listener
	go accept(listener, table)
	return nil
}

func accept(listener net.Listener, table *browsers.Table) {
	keepers := make(chan struct{}, mostKeepers)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		select {
		case keepers <- struct{}{}:
			go func() {
				defer func() { <-keepers }()
				tell(conn, table)
			}()
		default:
			_ = conn.Close()
		}
	}
}

// tell writes mappings until the reader is gone. The reader sends nothing, so the end of its bytes is its own.
func tell(conn net.Conn, table *browsers.Table) {
	defer func() { _ = conn.Close() }()
	known, updates, leave := table.Follow()
	defer leave()
	go func() {
		_, _ = conn.Read(make([]byte, 1))
		leave()
	}()
	out := bufio.NewWriter(conn)
	for _, mapping := range known {
		write(out, mapping)
	}
	for {
		_ = conn.SetWriteDeadline(time.Now().Add(mappingPatience))
		if out.Flush() != nil {
			return
		}
		mapping, ok := <-updates
		if !ok {
			return
		}
		write(out, mapping)
		for range len(updates) {
			if more, ok := <-updates; ok {
				write(out, more)
			}
		}
	}
}

// write leaves errors to the flush.
func write(out *bufio.Writer, mapping browsers.Mapping) {
	truth := "-"
	switch {
	case mapping.True.IsValid():
		truth = mapping.True.String()
	case mapping.Absent:
		truth = "absent"
	}
	_, _ = fmt.Fprintf(out, "%s %s\n", mapping.Instant, truth)
}

// close ends the server and removes its socket.
func (s *mappingServer) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	return nil
}

func (s *mappingServer) stop() {
	if s.listener != nil {
		_ = s.listener.Close()
		s.listener = nil
	}
}
