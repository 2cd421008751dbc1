package metricsocket

import (
	"errors"
	"net/http"
	"sync"
	"time"

	clog "github.com/coredns/coredns/plugin/pkg/log"

	"example.org/longhaul/coredns-plugin/unixsocket"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// patience is the longest time for a request and for its response.
const patience = 5 * time.Second

// shared is the socket of this process. The metrics are those of the process, so one socket serves all server blocks.
var shared server

// server is an HTTP server on a Unix socket.
type server struct {
	mu   sync.Mutex
	path string
	http *http.Server
}

// serve serves the metrics at path. It does nothing if they are served there already.
func (s *server) serve(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http != nil && s.path == path {
		return nil
	}
	s.stop()
	listener, err := unixsocket.Listen(path, 0o600)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.Handler())
	s.path, s.http = path, &http.Server{Handler: mux, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: patience}
	go func(http1 *http.Server) {
		if err := http1.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			clog.Errorf("Cannot serve the metrics on %s: %s", path, err)
		}
	}(s.http)
	return nil
}

// close ends the server and removes its socket.
func (s *server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	return nil
}

func (s *server) stop() {
	if s.http != nil {
		_ = s.http.Close()
		s.http = nil
	}
}
