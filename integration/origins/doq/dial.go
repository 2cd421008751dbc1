package main

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/quic-go/quic-go"
)

// dialFrom connects from an address of this machine.
func dialFrom(ctx context.Context, from, to string, config *tls.Config) (*quic.Conn, error) {
	local, err := net.ListenPacket("udp", net.JoinHostPort(from, "0"))
	if err != nil {
		return nil, err
	}
	server, err := net.ResolveUDPAddr("udp", to)
	if err != nil {
		return nil, err
	}
	return quic.Dial(ctx, local, server, config, nil)
}
