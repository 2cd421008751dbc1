package lookups

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coredns/coredns/pb"

	"github.com/miekg/dns"
	"google.golang.org/protobuf/proto"
)

const (
	// path is the method of CoreDNS's service (pb/dns.proto there).
	path = "/coredns.dns.DnsService/Query"
	// prefix is a byte for the compression, and the length of the message (gRPC over HTTP/2, Length-Prefixed-Message).
	prefix = 1 + 4
	// mostBytes is the largest response: a DNS message in a field of protobuf, behind its prefix.
	mostBytes = prefix + 4 + dns.MaxMsgSize
)

var (
	errWrong = errors.New("the response is to another query")
	errFrame = errors.New("the response is no message of gRPC")
	errCut   = errors.New("the connection ended before the response")
)

// streams sends queries to a server of gRPC without TLS. The stock client (google.golang.org/grpc) fails at once after a lost
// connection and tries again after up to 2 minutes, so this one is HTTP/2 alone.
type streams struct {
	url  string
	http http.Client
}

func newStreams(address string) *streams {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return &streams{url: "http://" + address + path, http: http.Client{Transport: transport}}
}

func (s *streams) close() { s.http.CloseIdleConnections() }

func (s *streams) exchange(ctx context.Context, query *dns.Msg) (*dns.Msg, error) {
	body, err := frame(query)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// No field that the other end does not need: each byte crosses the link.
	request.Header = http.Header{"Content-Type": {"application/grpc"}, "User-Agent": {""}}
	response, err := s.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCut, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCut, err)
	}
	status := response.Trailer.Get("Grpc-Status")
	if status == "" {
		status = response.Header.Get("Grpc-Status")
	}
	if response.StatusCode != http.StatusOK || status != "0" {
		return nil, fmt.Errorf("the other end responded with HTTP status %d, gRPC status %q", response.StatusCode, status)
	}
	m, err := unframe(text)
	if err != nil {
		return nil, err
	}
	m.Id = query.Id
	return m, nil
}

// frame returns the bytes of a request. The message has the identifier 0 (RFC 8484 section 4.1), as the stream identifies it.
func frame(query *dns.Msg) ([]byte, error) {
	anonymous := *query
	anonymous.Id = 0
	wire, err := anonymous.Pack()
	if err != nil {
		return nil, err
	}
	out, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, prefix, prefix+8+len(wire)), &pb.DnsPacket{Msg: wire})
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(out[1:], uint32(len(out)-prefix))
	return out, nil
}

// unframe reads the message of a response.
func unframe(text []byte) (*dns.Msg, error) {
	if len(text) < prefix || len(text) > mostBytes || text[0] != 0 || int(binary.BigEndian.Uint32(text[1:])) != len(text)-prefix {
		return nil, errFrame
	}
	var packet pb.DnsPacket
	if err := proto.Unmarshal(text[prefix:], &packet); err != nil {
		return nil, errFrame
	}
	m := new(dns.Msg)
	if err := m.Unpack(packet.GetMsg()); err != nil {
		return nil, err
	}
	return m, nil
}
