package take

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"example.org/longhaul/coredns-plugin/push/wire"
)

// stream opens a stream and serves it until it ends. It returns why there is none any more.
func (t *Taker) stream(ctx context.Context) State {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, out := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://ground"+wire.Path, body)
	if err != nil {
		return Refused
	}
	// No field that the other end does not need: each byte crosses the link.
	request.Header = http.Header{"User-Agent": {""}}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	hello := t.begin()
	running.Go(func() {
		defer cancel()
		t.write(ctx, out, hello)
	})
	response, err := t.http.Do(request)
	if err != nil {
		return Closed
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Closed
	default:
		return Refused
	}
	return t.read(wire.NewReader(response.Body))
}

// read takes what the ground says, until the stream ends.
func (t *Taker) read(in *wire.Reader) State {
	defer t.set(Closed)
	kind, body, err := in.Next()
	if err != nil {
		return Closed
	}
	if kind != wire.KindHello || wire.ReadGroundHello(body) != nil {
		return Refused
	}
	t.set(Open)
	for {
		kind, body, err := in.Next()
		if err != nil {
			return Closed
		}
		if kind != wire.KindAnswer {
			continue
		}
		m, err := wire.ReadAnswer(body)
		if err != nil {
			return Closed
		}
		t.keep(m)
	}
}

// write says what the ground needs to know, until ctx ends.
func (t *Taker) write(ctx context.Context, out *io.PipeWriter, hello wire.Hello) {
	// Ends a write that the connection does not take.
	defer context.AfterFunc(ctx, func() { _ = out.CloseWithError(ctx.Err()) })()
	// The line above may not come to it.
	defer func() { _ = out.CloseWithError(context.Canceled) }()
	if _, err := out.Write(wire.AppendHello(nil, hello)); err != nil {
		return
	}
	periods := time.NewTicker(time.Minute)
	defer periods.Stop()
	for {
		var frames []byte
		select {
		case used := <-t.uses:
			frames = wire.AppendUsed(frames, used)
		case <-periods.C:
			if period, changed := t.renew(); changed {
				frames = wire.AppendPeriod(frames, period)
			}
		case <-ctx.Done():
			return
		}
		if len(frames) == 0 {
			continue
		}
		select {
		case <-time.After(gather):
		case <-ctx.Done():
			return
		}
		for range len(t.uses) {
			frames = wire.AppendUsed(frames, <-t.uses)
		}
		if _, err := out.Write(frames); err != nil {
			return
		}
	}
}
