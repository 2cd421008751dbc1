package push

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"example.org/longhaul/coredns-plugin/push/followers"
	"example.org/longhaul/coredns-plugin/push/wire"

	"github.com/miekg/dns"
)

const (
	// quiet is the time without a lookup after which a remote is sent popular names.
	quiet = 10 * time.Second
	// mostPopular bounds the popular names that a remote is sent.
	mostPopular = 1000
	// burst is how many seconds of the rate for popular names may be sent at once.
	burst = 4
)

// hub is what this process knows, and its streams. A reload of the Corefile keeps it.
type hub struct {
	socket, file string
	now          func() time.Time
	// handler is the plugin of the Corefile of today, by which responses are fetched.
	handler atomic.Pointer[Push]
	// rate is what may be sent of popular names, in bytes a second; 0: none.
	rate atomic.Int64

	mu       sync.Mutex
	table    *followers.Table
	remotes  remotes
	sessions map[wire.Token]*session
	server   *server
}

func newHub(socket, file string, limit int, now func() time.Time) *hub {
	return &hub{socket: socket, file: file, now: now, table: followers.New(limit, now()), sessions: map[wire.Token]*session{}}
}

// session returns the open stream with a token, nil if there is none.
func (h *hub) session(token wire.Token) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[token]
}

// open adds the stream of a remote.
func (h *hub) open(hello wire.Hello) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	s := &session{
		hello: hello, remote: h.remotes.of(hello.ID, now), jobs: make(chan job, waiting), under: map[wire.Question]bool{},
		asked: now, triggers: map[string]time.Time{}, unsent: unsent{wake: make(chan struct{}, 1)},
	}
	h.remotes.byNumber[s.remote].open++
	h.sessions[hello.Token] = s
	sessions.Set(float64(len(h.sessions)))
	return s
}

// close removes the stream of a remote.
func (h *hub) close(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.remotes.byNumber[s.remote]
	known.open--
	known.seen = h.now()
	// A remote that opens a stream twice has the second one.
	if h.sessions[s.hello.Token] == s {
		delete(h.sessions, s.hello.Token)
	}
	sessions.Set(float64(len(h.sessions)))
}

// period sets a remote's period of hashes.
func (h *hub) period(s *session, period wire.Period) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.hello.Period = period
}

// asked notes that a client of a remote asks a question, and sends what usually follows.
func (h *hub) asked(s *session, mark wire.Mark, question wire.Question) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Its response is under way, so nothing else needs to send it.
	h.remotes.set(s.remote, question, h.now().Add(patience), h.now())
	h.lookup(s, followers.Lookup{Client: s.client(mark.Client), Name: question.Name, Types: typeOf[question.Type], Again: mark.Refresh})
}

// used notes that a client of a remote used a response that was sent before.
func (h *hub) used(s *session, used wire.Used) {
	types := typeOf[used.Question.Type]
	if types == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lookup(s, followers.Lookup{Client: s.client(used.Client), Name: used.Question.Name, Types: types})
}

// lookup learns from a lookup, and sends what usually follows.
func (h *hub) lookup(s *session, l followers.Lookup) {
	now := h.now()
	s.asked = now
	s.trigger(l.Name, now)
	if h.table.Ask(l, now) {
		h.want(s, h.table.Following(l.Name), byFollower)
	}
}

// page notes that a page of a host names other hosts. Remotes that asked for the host of late load the page.
func (h *hub) page(host string, names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	h.table.Page(host, names, typeOf[dns.TypeA]|typeOf[dns.TypeHTTPS], now)
	for _, s := range h.sessions {
		if at, ok := s.triggers[host]; ok && now.Sub(at) <= pageTime {
			h.want(s, h.table.Following(host), byPage)
		}
	}
}

// want fetches and sends the responses for names that the remote does not have.
func (h *hub) want(s *session, names []followers.Following, why reason) {
	for _, name := range names {
		for _, qtype := range wire.Types {
			question := wire.Question{Name: name.Name, Type: qtype}
			if name.Types&typeOf[qtype] == 0 || s.under[question] || h.remotes.has(s.remote, question, h.now()) {
				continue
			}
			select {
			case s.jobs <- job{question, why}:
				s.under[question] = true
			default:
				return
			}
		}
	}
}

// sent notes the response that a remote gets to its query.
func (h *hub) sent(s *session, question wire.Question, m *dns.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	h.remotes.set(s.remote, question, hasUntil(m, s.hello.Keeps, now), now)
}

// send fetches a response and sends it.
func (h *hub) send(ctx context.Context, s *session, j job) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var m *dns.Msg
	var until time.Time
	if handler := h.handler.Load(); handler != nil {
		m, until = handler.fetch(ctx, j.question, s.hello.Keeps, h.now)
	}
	var frame []byte
	if m != nil {
		frame = wire.AppendAnswer(nil, m)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(s.under, j.question)
	now := h.now()
	// The client may have asked meanwhile.
	if len(frame) == 0 || h.remotes.has(s.remote, j.question, now) || !s.unsent.add(frame) {
		return
	}
	h.remotes.set(s.remote, j.question, until, now)
	s.ahead -= len(frame)
	answersSent.WithLabelValues(string(j.reason)).Inc()
	bytesSent.WithLabelValues(string(j.reason)).Add(float64(len(frame)))
}

// sendAhead sends popular names to the remotes that ask nothing now. It is called every second.
func (h *hub) sendAhead() {
	rate := int(h.rate.Load())
	h.mu.Lock()
	defer h.mu.Unlock()
	if rate == 0 || len(h.sessions) == 0 {
		return
	}
	var popular []followers.Following
	for _, s := range h.sessions {
		s.ahead = min(s.ahead+rate, burst*rate)
		if s.ahead <= 0 || h.now().Sub(s.asked) < quiet || len(s.under) > 0 || !s.unsent.empty() {
			continue
		}
		if popular == nil {
			popular = h.table.Popular(mostPopular)
		}
		h.want(s, h.next(s, popular), byPopularity)
	}
}

// next returns the popular names to send in this second.
func (h *hub) next(s *session, popular []followers.Following) (names []followers.Following) {
	// A response has about 100 bytes.
	room := max(1, s.ahead/100)
	for _, name := range popular {
		// Once in the time that the remote keeps a response. A denial ends sooner, and is not sent again and again.
		sent := wire.Question{Name: name.Name}
		if h.remotes.has(s.remote, sent, h.now()) {
			continue
		}
		lacks := 0
		for qtype, bit := range typeOf {
			if name.Types&bit != 0 && !h.remotes.has(s.remote, wire.Question{Name: name.Name, Type: qtype}, h.now()) {
				lacks++
			}
		}
		if lacks == 0 {
			continue
		}
		names = append(names, name)
		h.remotes.set(s.remote, sent, h.now().Add(s.hello.Keeps), h.now())
		if room -= lacks; room <= 0 {
			break
		}
	}
	return names
}

// show sets the gauges.
func (h *hub) show() {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken, names, known := h.table.Size()
	bytesTaken.Set(float64(taken))
	namesKnown.Set(float64(names))
	followersKnown.Set(float64(known))
}
