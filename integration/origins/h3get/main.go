// Command h3get is a client that speaks only HTTP/3. A browser is no substitute: it falls back to TCP and hides errors.
//
//	h3get [flags] URL...
//
// It fetches all URLs at once, over one connection per name, or one per URL with -apart. For each URL it prints one
// line of JSON: the response, or the problem.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// result is one line of output.
type result struct {
	URL     string      `json:"url"`
	Problem string      `json:"problem,omitempty"`
	Status  int         `json:"status,omitempty"`
	Proto   string      `json:"proto,omitempty"`
	Header  http.Header `json:"header,omitempty"`
	Bytes   int         `json:"bytes"`
	Body    string      `json:"body,omitempty"` // with -body
	Seconds float64     `json:"seconds"`
}

func main() {
	authority := flag.String("cacert", "", "file of the trusted authorities (PEM)")
	connect := flag.String("connect", "", "address:port to connect to, instead of the URL's")
	cert := flag.String("cert", "", "file of the client's certificate (PEM)")
	key := flag.String("key", "", "file of its key")
	name := flag.String("servername", "", "server name for TLS; by default the URL's host")
	upload := flag.Int("upload", 0, "POST this many bytes instead of GET")
	apart := flag.Bool("apart", false, "open a connection for each URL")
	hold := flag.Duration("hold", 0, "keep connections open this long after the last response")
	body := flag.Bool("body", false, "print bodies too")
	patience := flag.Duration("timeout", 10*time.Second, "timeout for each URL")
	flag.Parse()

	trusted := x509.NewCertPool()
	if pem, err := os.ReadFile(*authority); err == nil {
		trusted.AppendCertsFromPEM(pem)
	}
	var own []tls.Certificate
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			fmt.Fprintln(os.Stderr, "h3get:", err)
			os.Exit(1)
		}
		own = append(own, pair)
	}
	transport := func() *http3.Transport {
		return &http3.Transport{
			TLSClientConfig:    &tls.Config{RootCAs: trusted, ServerName: *name, Certificates: own},
			DisableCompression: true,
			Dial: func(ctx context.Context, address string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
				if *connect != "" {
					address = *connect
				}
				return quic.DialAddr(ctx, address, tlsConfig, config)
			},
		}
	}
	shared := transport()
	transports := make([]*http3.Transport, flag.NArg())
	lines := make([]result, flag.NArg())
	var all sync.WaitGroup
	for i, url := range flag.Args() {
		if transports[i] = shared; *apart {
			transports[i] = transport()
		}
		all.Go(func() { lines[i] = fetch(transports[i], url, *upload, *body, *patience) })
	}
	all.Wait()
	time.Sleep(*hold)
	for _, t := range transports {
		_ = t.Close() // otherwise the other end keeps the connection until it times out
	}
	out := json.NewEncoder(os.Stdout)
	for _, line := range lines {
		if err := out.Encode(line); err != nil {
			fmt.Fprintln(os.Stderr, "h3get:", err)
			os.Exit(1)
		}
	}
}

// fetch requests one URL and reads the response to its end.
func fetch(t *http3.Transport, url string, upload int, keep bool, patience time.Duration) result {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	start := time.Now()
	failed := func(err error) result {
		return result{URL: url, Problem: describe(err), Seconds: time.Since(start).Seconds()}
	}
	method, sent := http.MethodGet, io.Reader(nil)
	if upload > 0 {
		method, sent = http.MethodPost, bytes.NewReader(make([]byte, upload))
	}
	request, err := http.NewRequestWithContext(ctx, method, url, sent)
	if err != nil {
		return failed(err)
	}
	answer, err := t.RoundTrip(request)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = answer.Body.Close() }()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		return failed(fmt.Errorf("after %d bytes: %w", len(got), err))
	}
	line := result{
		URL: url, Status: answer.StatusCode, Proto: answer.Proto, Header: answer.Header, Bytes: len(got),
		Seconds: time.Since(start).Seconds(),
	}
	if keep {
		line.Body = string(got)
	}
	return line
}

// describe marks timeouts, because tests distinguish them from refusals.
func describe(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "no response: " + err.Error()
	}
	return err.Error()
}
