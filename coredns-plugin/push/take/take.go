// Package take is the remote's side of names that are sent before they are asked. It keeps one stream to the ground open, marks
// the queries of clients with it, and hands on the responses that come on it.
package take

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net"
	"net/http"
	"sync"
	"time"

	"example.org/longhaul/coredns-plugin/push/wire"

	"github.com/miekg/dns"
)

const (
	// newPeriod is the time after which clients have other hashes.
	newPeriod = 24 * time.Hour
	// gather is how long the first use waits for others, so that those of a page leave together.
	gather = 10 * time.Millisecond
	// waiting bounds the uses that wait. Further ones are not told.
	waiting = 256
	// firstRetry and lastRetry bound the time before another stream is opened, after one that ended.
	firstRetry, lastRetry = time.Second, time.Minute
	// askAgain is the time after which a ground that takes no such streams is asked again. It may be another release then.
	askAgain = 10 * time.Minute
	// lasted is how long a stream has to last, so that the next one is opened soon.
	lasted = time.Minute
)

// State is that of the stream.
type State int

// The states.
const (
	Closed State = iota
	Open
	// Refused: the ground is of an earlier or later release, or sends no names.
	Refused
)

// Taker takes responses from a ground.
type Taker struct {
	http http.Client
	id   wire.ID
	// keeps is how long a response is kept.
	keeps time.Duration
	// keep is called for each response.
	keep func(*dns.Msg)
	// show is called for each new state.
	show func(State)
	uses chan wire.Used

	mu     sync.Mutex
	state  State
	token  wire.Token
	key    [sha256.Size]byte
	period wire.Period
	since  time.Time
	now    func() time.Time
}

// New returns a taker of the responses that the ground behind a Unix socket sends. It calls keep for each of them, and show for each
// state of the stream.
func New(socket string, id wire.ID, keeps time.Duration, keep func(*dns.Msg), show func(State)) *Taker {
	transport := &http.Transport{
		Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return &Taker{
		http: http.Client{Transport: transport}, id: id, keeps: keeps, keep: keep, show: show,
		uses: make(chan wire.Used, waiting), now: time.Now,
	}
}

// Mark marks a query of a client, while a stream is open. Refresh says that a response is there meanwhile. A mark that the
// client wrote is removed in any case, also by no taker.
func (t *Taker) Mark(query *dns.Msg, client net.IP, refresh bool) {
	wire.RemoveMark(query)
	if _, sent := wire.QuestionOf(query); t == nil || !sent {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != Open || len(client) == 0 {
		return
	}
	wire.Mark{Token: t.token, Client: t.hash(client), Refresh: refresh}.Put(query)
}

// Use notes that a client used a response that was sent before.
func (t *Taker) Use(client net.IP, question dns.Question) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != Open || len(client) == 0 {
		return
	}
	select {
	case t.uses <- wire.Used{Client: t.hash(client), Question: wire.Question{Name: dns.CanonicalName(question.Name), Type: question.Qtype}}:
	default:
	}
}

// hash returns what stands for a client in this period: its address, or its /64 network.
func (t *Taker) hash(client net.IP) wire.Hash {
	address := client.To4()
	if address == nil {
		address = client.Mask(net.CIDRMask(64, 128))
	}
	sum := hmac.New(sha256.New, t.key[:])
	_, _ = sum.Write(address)
	return wire.Hash(binary.BigEndian.Uint32(sum.Sum(nil)))
}

// begin draws a token for a new stream, and a key if there is none or its period ended.
func (t *Taker) begin() wire.Hello {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rotate()
	_, _ = rand.Read(t.token[:])
	return wire.Hello{ID: t.id, Token: t.token, Period: t.period, Keeps: t.keeps}
}

// rotate draws another key and period if it is time, and returns true then.
func (t *Taker) rotate() bool {
	now := t.now()
	if age := now.Sub(t.since); !t.since.IsZero() && age >= 0 && age < newPeriod {
		return false
	}
	var period [2]byte
	_, _ = rand.Read(t.key[:])
	_, _ = rand.Read(period[:])
	t.since = now
	// Never the one before.
	if next := wire.Period(binary.BigEndian.Uint16(period[:])); next != t.period {
		t.period = next
	} else {
		t.period++
	}
	return true
}

// renew returns the new period if it is time for one.
func (t *Taker) renew() (wire.Period, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.rotate()
	return t.period, changed
}

func (t *Taker) set(state State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = state
	t.show(state)
}

// Run keeps a stream open until ctx ends.
func (t *Taker) Run(ctx context.Context) {
	defer t.http.CloseIdleConnections()
	wait := firstRetry
	for ctx.Err() == nil {
		began := t.now()
		state := t.stream(ctx)
		t.set(state)
		switch {
		case state == Refused:
			wait = askAgain
		case t.now().Sub(began) >= lasted:
			wait = firstRetry
		default:
			wait = min(2*wait, lastRetry)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		if state == Refused {
			wait = firstRetry
		}
	}
}
