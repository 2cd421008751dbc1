package remember

import (
	"crypto/rand"
	"io"
	"os"

	"example.org/longhaul/coredns-plugin/internal/judge"
	"example.org/longhaul/coredns-plugin/internal/whole"
	"example.org/longhaul/coredns-plugin/push/take"
	"example.org/longhaul/coredns-plugin/push/wire"
	"example.org/longhaul/coredns-plugin/remember/store"

	"github.com/miekg/dns"
)

// take keeps a response that the ground sent unasked. A resolver may have put anything into it. So the
// records about the name in its question are kept, and no others. A fresh response stays.
func (h *Remember) take(m *dns.Msg) {
	// As it came, and as it is kept.
	m.Compress = true
	pushedBytes.Add(float64(m.Len()))
	pushedTotal.WithLabelValues(h.taken(m)).Inc()
}

// taken returns the fate of the response, as the metric names it.
func (h *Remember) taken(m *dns.Msg) string {
	const refused, known, kept = "refused", "known", "kept"
	if len(m.Question) != 1 || m.Rcode != dns.RcodeSuccess {
		return refused
	}
	if _, sent := wire.QuestionOf(&dns.Msg{Question: m.Question}); !sent {
		return refused
	}
	key, ok := keyOf(&dns.Msg{Question: m.Question})
	if !ok {
		return refused
	}
	plain := &dns.Msg{MsgHdr: m.MsgHdr, Question: m.Question, Answer: judge.Chain(m)}
	if len(plain.Answer) != len(m.Answer) || len(m.Extra) > 0 {
		return refused
	}
	if !judge.Answers(m) {
		plain.Ns = m.Ns
	}
	switch fate, _ := judge.Of(plain, h.now()); fate {
	case judge.Keep, judge.KeepDenial:
	default:
		return refused
	}
	if h.fresh(key) {
		return known
	}
	h.learn(key, plain, store.Pushed|store.Unasked)
	h.satisfy(key)
	return kept
}

// satisfy gives a response that came unasked to the clients that wait for it. Their own query has gone already.
func (h *Remember) satisfy(key store.Key) {
	name := nameOf(key)
	h.mu.Lock()
	query := h.asking[name]
	h.mu.Unlock()
	if query == nil {
		return
	}
	if truth, is := h.recall(key, h.memory.Get); truth != nil {
		pushedUsed.Add(float64(is.bytes))
		h.end(name, query, asking{truth: truth})
	}
}

// fresh returns true if there is a fresh response.
func (h *Remember) fresh(key store.Key) bool {
	var room [2048]byte
	had, ok := h.memory.Peek(key, room[:0])
	now := h.now().Unix()
	return ok && int64(had.Stored) <= now && now < int64(had.Expires)
}

func showStream(state take.State) {
	open := 0.0
	if state == take.Open {
		open = 1
	}
	pushedStream.Set(open)
}

// idOf returns the identifier of a memory, which the ground knows it by. A memory that begins anew has a new one, because the
// ground does not send what it believes that a memory has.
func idOf(path string, begins bool) wire.ID {
	path += ".id"
	var id wire.ID
	if !begins {
		if text, err := os.ReadFile(path); err == nil && len(text) == len(id) {
			copy(id[:], text)
			return id
		}
	}
	_, _ = rand.Read(id[:])
	if err := whole.Write(path, func(file io.Writer) error {
		_, err := file.Write(id[:])
		return err
	}); err != nil {
		log.Warningf("The ground will not know this memory again after a restart: %s", err)
	}
	return id
}
