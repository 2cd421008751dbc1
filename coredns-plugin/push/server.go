package push

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"example.org/longhaul/coredns-plugin/push/wire"

	"github.com/miekg/dns"
)

const (
	// pagePath takes the hosts that an http page names.
	pagePath = "/page"
	// hostsField lists them, separated by commas. The first one is that of the page.
	hostsField = "x-longhaul-hosts"
	// mostHosts bounds such a list.
	mostHosts = 1 + 32
)

// server serves remotes' streams and the hosts of pages on a Unix socket, which only this user can reach.
type server struct {
	http    http.Server
	stop    context.CancelFunc
	running sync.WaitGroup
}

// listen opens the socket.
func listen(socket string) (net.Listener, error) {
	// The socket of a process that was killed is still there.
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

// serve begins to serve h.
func serve(h *hub, listener net.Listener) *server {
	ctx, stop := context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+wire.Path, func(w http.ResponseWriter, r *http.Request) { h.stream(ctx, w, r) })
	mux.HandleFunc("POST "+pagePath, h.takePage)
	s := &server{stop: stop, http: http.Server{Handler: mux, ReadHeaderTimeout: patience, Protocols: new(http.Protocols)}}
	s.http.Protocols.SetUnencryptedHTTP2(true)
	s.running.Go(func() {
		if err := s.http.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Errorf("Cannot serve names on %s: %s", listener.Addr(), err)
		}
	})
	s.running.Go(func() { h.keep(ctx) })
	return s
}

// close ends all streams.
func (s *server) close() {
	s.stop()
	_ = s.http.Close()
	s.running.Wait()
}

// keep saves what was learned every so often, and sends popular names, until ctx ends.
func (h *hub) keep(ctx context.Context) {
	saves, seconds := time.NewTicker(saveEvery), time.NewTicker(time.Second)
	defer saves.Stop()
	defer seconds.Stop()
	for {
		select {
		case <-saves.C:
			h.save()
		case <-seconds.C:
			h.sendAhead()
			h.show()
		case <-ctx.Done():
			return
		}
	}
}

// stream serves a remote until either end stops.
func (h *hub) stream(stopped context.Context, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(stopped, cancel)()
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Now().Add(patience))
	in := wire.NewReader(r.Body)
	kind, body, err := in.Next()
	if err != nil || kind != wire.KindHello {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_ = out.SetReadDeadline(time.Time{})
	hello, err := wire.ReadHello(body)
	if err != nil {
		if errors.Is(err, wire.ErrVersion) {
			_, _ = w.Write(wire.AppendGroundHello(nil))
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s := h.open(hello)
	defer h.close(s)
	if _, err := w.Write(wire.AppendGroundHello(nil)); err != nil || out.Flush() != nil {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		defer cancel()
		h.read(s, in)
	})
	for range atOnce {
		running.Go(func() { h.work(ctx, s) })
	}
	for {
		frames, ok := s.unsent.take(ctx)
		if !ok {
			break
		}
		if _, err := w.Write(frames); err != nil || out.Flush() != nil {
			break
		}
	}
	// The reader may wait for a frame.
	_ = out.SetReadDeadline(time.Unix(1, 0))
}

func (h *hub) work(ctx context.Context, s *session) {
	for {
		select {
		case j := <-s.jobs:
			h.send(ctx, s, j)
		case <-ctx.Done():
			return
		}
	}
}

// read takes what a remote says, until the stream ends.
func (h *hub) read(s *session, in *wire.Reader) {
	for {
		kind, body, err := in.Next()
		if err != nil {
			return
		}
		switch kind {
		case wire.KindPeriod:
			period, err := wire.ReadPeriod(body)
			if err != nil {
				return
			}
			h.period(s, period)
		case wire.KindUsed:
			used, err := wire.ReadUsed(body)
			if err != nil {
				return
			}
			h.used(s, used)
		}
	}
}

// takePage takes the hosts that a page names, from Envoy's filter.
func (h *hub) takePage(w http.ResponseWriter, r *http.Request) {
	var hosts []string
	for text := range strings.SplitSeq(r.Header.Get(hostsField), ",") {
		if host := dns.CanonicalName(text); isName(host) && len(hosts) < mostHosts {
			hosts = append(hosts, host)
		} else if len(hosts) == 0 {
			break
		}
	}
	if len(hosts) > 1 {
		h.page(hosts[0], hosts[1:])
	}
	w.WriteHeader(http.StatusNoContent)
}

// isName returns true if a host can be asked for: it is a name with two labels, and no address.
func isName(host string) bool {
	labels, ok := dns.IsDomainName(host)
	return ok && labels >= 2 && net.ParseIP(host[:len(host)-1]) == nil
}
