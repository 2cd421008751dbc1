// Command doq is a client of DNS over QUIC (RFC 9250) for tests.
//
//	doq [flags] ADDRESS:PORT < queries
//
// Each line of its input is a query in hexadecimal digits. All go over one connection, one after the other, or over a
// connection each with -apart. For each it prints a line: the response in hexadecimal digits, or `! ` and the problem.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

func main() {
	authority := flag.String("cacert", "", "file of the trusted authorities (PEM)")
	name := flag.String("servername", "", "server name for TLS")
	from := flag.String("from", "", "address of the client")
	apart := flag.Bool("apart", false, "open a connection for each query")
	patience := flag.Duration("timeout", 5*time.Second, "timeout for each query")
	flag.Parse()

	trusted := x509.NewCertPool()
	if pem, err := os.ReadFile(*authority); err == nil {
		trusted.AppendCertsFromPEM(pem)
	}
	client := &client{
		server: flag.Arg(0), from: *from,
		tls: &tls.Config{RootCAs: trusted, ServerName: *name, NextProtos: []string{"doq"}},
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		response, err := client.ask(lines.Text(), *patience)
		if err != nil {
			fmt.Println("!", err)
		} else {
			fmt.Println(hex.EncodeToString(response))
		}
		if *apart {
			client.close()
		}
	}
	client.close()
}

type client struct {
	server, from string
	tls          *tls.Config
	conn         *quic.Conn
}

func (c *client) ask(query string, patience time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	message, err := hex.DecodeString(query)
	if err != nil {
		return nil, err
	}
	if c.conn == nil {
		if c.conn, err = c.connect(ctx); err != nil {
			return nil, err
		}
	}
	stream, err := c.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	_ = stream.SetDeadline(time.Now().Add(patience))
	if _, err := stream.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)); err != nil {
		return nil, err
	}
	if err := stream.Close(); err != nil { // one query a stream
		return nil, err
	}
	response, err := io.ReadAll(stream)
	if err != nil {
		return nil, err
	}
	if len(response) < 2 || int(binary.BigEndian.Uint16(response)) != len(response)-2 {
		return nil, errors.New("the length before the response is not that of the response")
	}
	return response[2:], nil
}

func (c *client) connect(ctx context.Context) (*quic.Conn, error) {
	local, err := net.ListenPacket("udp", net.JoinHostPort(c.from, "0"))
	if err != nil {
		return nil, err
	}
	server, err := net.ResolveUDPAddr("udp", c.server)
	if err != nil {
		return nil, err
	}
	return quic.Dial(ctx, local, server, c.tls, nil)
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.CloseWithError(0, "")
		c.conn = nil
	}
}
