package encrypted

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/dnsserver"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// CoreDNS has a server of QUIC. After a reload, its old socket takes packets of the new one for as long as the process
// lives, if a client was connected. So the plugin has a server of its own, which goes on over a reload.

// Errors of a connection or a stream (RFC 9250 section 4.3).
const (
	noError       quic.ApplicationErrorCode = 0
	internalError quic.StreamErrorCode      = 1
	protocolError quic.ApplicationErrorCode = 2
	excessiveLoad quic.ApplicationErrorCode = 4
)

const (
	idleTime      = 30 * time.Second
	queryTime     = 5 * time.Second // for a query that has begun
	clientConns   = 32              // the connections of one client
	allConns      = 4000
	streamsAtOnce = 64 // in a connection
)

// quicServers are the servers of this process, by address.
var quicServers = struct {
	sync.Mutex
	by map[string]*quicServer
}{by: map[string]*quicServer{}}

// quicServer is a server of QUIC on one socket.
type quicServer struct {
	socket    net.PacketConn
	transport *quic.Transport
	listener  *quic.Listener
	chain     atomic.Pointer[chain]

	mu    sync.Mutex
	conns map[netip.Addr]int
	all   int
}

// chain is what answers queries: the plugins of the Corefile in use.
type chain struct {
	server *dnsserver.Server
	tls    *tls.Config
}

// serveQUIC makes c answer at an address, from now on.
func serveQUIC(addr string, c *chain) error {
	quicServers.Lock()
	defer quicServers.Unlock()
	if running := quicServers.by[addr]; running != nil {
		running.chain.Store(c)
		return nil
	}
	socket, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	s := &quicServer{socket: socket, transport: &quic.Transport{Conn: socket}, conns: map[netip.Addr]int{}}
	s.chain.Store(c)
	current := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.chain.Load().tls, nil }}
	s.listener, err = s.transport.Listen(current, &quic.Config{
		MaxIdleTimeout: idleTime, MaxIncomingStreams: streamsAtOnce, MaxIncomingUniStreams: -1,
	})
	if err != nil {
		_ = socket.Close()
		return err
	}
	quicServers.by[addr] = s
	go s.accept()
	return nil
}

// stopQUIC ends the server at an address, unless it has another chain by now.
func stopQUIC(addr string, c *chain) {
	quicServers.Lock()
	defer quicServers.Unlock()
	s := quicServers.by[addr]
	if s == nil || s.chain.Load() != c {
		return
	}
	delete(quicServers.by, addr)
	_ = s.listener.Close()
	_ = s.transport.Close()
	_ = s.socket.Close()
}

func (s *quicServer) accept() {
	for {
		conn, err := s.listener.Accept(context.Background())
		if err != nil {
			return // closed
		}
		client := clientOf(conn.RemoteAddr())
		if !s.enter(client) {
			_ = conn.CloseWithError(excessiveLoad, "too many connections")
			continue
		}
		go func() {
			defer s.leave(client)
			s.serve(conn)
		}()
	}
}

func clientOf(addr net.Addr) netip.Addr {
	if udp, ok := addr.(*net.UDPAddr); ok {
		return udp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// enter counts a connection of a client. It returns false if the client or all clients have too many.
func (s *quicServer) enter(client netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= allConns || s.conns[client] >= clientConns {
		return false
	}
	s.all++
	s.conns[client]++
	return true
}

func (s *quicServer) leave(client netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.conns[client]--; s.conns[client] == 0 {
		delete(s.conns, client)
	}
}

// serve answers the queries of a connection, each on a stream of its own.
func (s *quicServer) serve(conn *quic.Conn) {
	for {
		stream, err := conn.AcceptStream(context.Background())
		if err != nil {
			_ = conn.CloseWithError(noError, "")
			return
		}
		go s.answer(conn, stream)
	}
}

func (s *quicServer) answer(conn *quic.Conn, stream *quic.Stream) {
	_ = stream.SetReadDeadline(time.Now().Add(queryTime))
	query, err := readQuery(stream)
	switch {
	case errors.Is(err, errProtocol):
		_ = conn.CloseWithError(protocolError, err.Error())
		return
	case err != nil: // the client ended the stream, or is too slow
		stream.CancelRead(quic.StreamErrorCode(noError))
		stream.CancelWrite(internalError)
		return
	}
	now := s.chain.Load()
	ctx := context.WithValue(stream.Context(), dnsserver.Key{}, now.server)
	ctx = context.WithValue(ctx, dnsserver.LoopKey{}, 0)
	w := &streamWriter{conn: conn, stream: stream}
	now.server.ServeDNS(ctx, w, query)
	if !w.written {
		stream.CancelWrite(internalError)
	}
}

var errProtocol = errors.New("not a query of RFC 9250")

// readQuery reads the only message of a stream (RFC 9250 sections 4.2 and 4.3.3).
func readQuery(stream io.Reader) (*dns.Msg, error) {
	wire, err := io.ReadAll(io.LimitReader(stream, 2+dns.MaxMsgSize+1))
	if err != nil {
		return nil, err
	}
	if len(wire) < 2 || int(binary.BigEndian.Uint16(wire)) != len(wire)-2 {
		return nil, errProtocol
	}
	query := new(dns.Msg)
	if query.Unpack(wire[2:]) != nil || query.Response || query.Id != 0 {
		return nil, errProtocol
	}
	if opt := query.IsEdns0(); opt != nil {
		for _, option := range opt.Option {
			if option.Option() == dns.EDNS0TCPKEEPALIVE {
				return nil, errProtocol
			}
		}
	}
	return query, nil
}

// streamWriter writes the response of a stream.
type streamWriter struct {
	conn    *quic.Conn
	stream  *quic.Stream
	written bool
}

func (w *streamWriter) WriteMsg(m *dns.Msg) error {
	wire, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = w.Write(wire)
	return err
}

func (w *streamWriter) Write(wire []byte) (int, error) {
	if len(wire) > dns.MaxMsgSize {
		return 0, dns.ErrBuf
	}
	w.written = true
	_ = w.stream.SetWriteDeadline(time.Now().Add(queryTime))
	if _, err := w.stream.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...)); err != nil {
		return 0, err
	}
	return len(wire), w.stream.Close()
}

func (w *streamWriter) LocalAddr() net.Addr   { return w.conn.LocalAddr() }
func (w *streamWriter) RemoteAddr() net.Addr  { return w.conn.RemoteAddr() }
func (w *streamWriter) Close() error          { return w.stream.Close() }
func (w *streamWriter) TsigStatus() error     { return dns.ErrSecret }
func (w *streamWriter) TsigTimersOnly(_ bool) {}
func (w *streamWriter) Hijack()               {}
