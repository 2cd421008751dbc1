package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/netip"
	"sort"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go/http3"
)

// stopTimeout bounds how long responses in flight (slow pages, 50 MB bodies) may delay the end of a test.
const stopTimeout = 500 * time.Millisecond

// Servers holds the running listeners of a site.
type Servers struct {
	dns   []*dns.Server
	http  []*http.Server
	http3 []*http3.Server
}

// Start opens every socket before it returns. After an error, none stays open.
func Start(site *Site, log *Log) (*Servers, error) {
	servers := &Servers{}
	if err := servers.open(site, log); err != nil {
		servers.Stop()
		return nil, err
	}
	return servers, nil
}

func (s *Servers) open(site *Site, log *Log) error {
	for _, address := range site.DNS {
		if err := s.openDNS(address, &NameServer{site: site, log: log}); err != nil {
			return err
		}
	}
	handler := NewHandler(site, log)
	issuer := NewIssuer(site)
	for _, address := range distinctAddresses(site) {
		if site.HTTPPort != 0 {
			if err := s.openHTTP(netip.AddrPortFrom(address, site.HTTPPort), handler, nil, log); err != nil {
				return err
			}
		}
		if site.HTTPSPort != 0 {
			config := &tls.Config{GetCertificate: issuer.Certificate}
			announcing := announce(handler, site.HTTP3Port)
			if err := s.openHTTP(netip.AddrPortFrom(address, site.HTTPSPort), announcing, config, log); err != nil {
				return err
			}
		}
		if site.HTTP3Port != 0 {
			config := &tls.Config{GetCertificate: issuer.Certificate}
			if err := s.openHTTP3(netip.AddrPortFrom(address, site.HTTP3Port), handler, config); err != nil {
				return err
			}
		}
	}
	return nil
}

func distinctAddresses(site *Site) []netip.Addr {
	seen := map[netip.Addr]bool{}
	var addresses []netip.Addr
	for _, address := range site.address {
		if !seen[address] {
			seen[address] = true
			addresses = append(addresses, address)
		}
	}
	sort.Slice(addresses, func(i, j int) bool { return addresses[i].Less(addresses[j]) })
	return addresses
}

func (s *Servers) openDNS(address string, handler dns.Handler) error {
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return fmt.Errorf("dns: %w", err)
	}
	streams, err := net.Listen("tcp", address)
	if err != nil {
		_ = packets.Close()
		return fmt.Errorf("dns: %w", err)
	}
	for _, server := range []*dns.Server{{PacketConn: packets, Handler: handler}, {Listener: streams, Handler: handler}} {
		s.dns = append(s.dns, server)
		go func() { _ = server.ActivateAndServe() }()
	}
	return nil
}

func (s *Servers) openHTTP(address netip.AddrPort, handler http.Handler, config *tls.Config, log *Log) error {
	listener, err := net.Listen("tcp", address.String())
	if err != nil {
		return fmt.Errorf("http: %w", err)
	}
	server := &http.Server{
		Handler:           handler,
		TLSConfig:         config,
		ReadHeaderTimeout: 30 * time.Second,
		ConnState: func(conn net.Conn, state http.ConnState) {
			if state == http.StateNew {
				log.Write(Event{Event: "connect", Remote: conn.RemoteAddr().String(), Local: conn.LocalAddr().String()})
			}
		},
		// In many tests, clients hang up in the handshake. That is no news.
		ErrorLog: stdlog.New(io.Discard, "", 0),
	}
	s.http = append(s.http, server)
	go func() {
		if config == nil {
			err = server.Serve(listener)
		} else {
			err = server.ServeTLS(listener, "", "")
		}
		if !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("origin on %s: %v", address, err))
		}
	}()
	return nil
}

// announce adds an Alt-Svc field (RFC 7838), by which clients that came over TCP find the same site over QUIC.
func announce(handler http.Handler, port uint16) http.Handler {
	if port == 0 {
		return handler
	}
	value := fmt.Sprintf(`h3=":%d"; ma=86400`, port)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", value)
		handler.ServeHTTP(w, r)
	})
}

func (s *Servers) openHTTP3(address netip.AddrPort, handler http.Handler, config *tls.Config) error {
	packets, err := net.ListenPacket("udp", address.String())
	if err != nil {
		return fmt.Errorf("http3: %w", err)
	}
	server := &http3.Server{Handler: handler, TLSConfig: http3.ConfigureTLSConfig(config)}
	s.http3 = append(s.http3, server)
	go func() {
		defer func() { _ = packets.Close() }()
		if err := server.Serve(packets); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("origin on %s over QUIC: %v", address, err))
		}
	}()
	return nil
}

// Stop ends every listener. Responses that are still in flight after stopTimeout are cut.
func (s *Servers) Stop() {
	for _, server := range s.dns {
		_ = server.Shutdown()
	}
	for _, server := range s.http3 {
		_ = server.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, server := range s.http {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
}
