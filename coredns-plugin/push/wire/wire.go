// Package wire is what the two ends of a pair say about names that are sent before they are asked. It does no I/O but for
// reading and writing frames.
//
// A remote opens one stream: a POST whose body and response are frames, as long as both ends run. A frame is its length (a
// varint), a byte for its kind, and the rest. An end ignores kinds that it does not know, so that later releases may add some.
//
// Frames to the ground:
//
//	hello   the identifier of the remote, and how long it remembers.
//	period  From now on, clients have other hashes.
//	used    A client used a response that was sent before.
//
// Frames to the remote:
//
//	hello   This ground sends names.
//	answer  a response in DNS's wire format.
package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/miekg/dns"
)

const (
	// Path is that of the stream. Envoy routes by it.
	Path = "/longhaul.names/push"
	// Version is that of the frames. An end with another one says so in its hello, and the stream ends.
	Version = 1
	// mostBytes bounds a frame: a DNS message and its kind.
	mostBytes = 1 + dns.MaxMsgSize
)

// Kind is what a frame says.
type Kind byte

// The kinds of frames.
const (
	KindHello  Kind = 'h'
	KindPeriod Kind = 'p'
	KindUsed   Kind = 'u'
	KindAnswer Kind = 'a'
)

var (
	errFrame = errors.New("a frame cannot be read")
	// ErrVersion says that the other end speaks another version.
	ErrVersion = errors.New("the other end has another version of the frames")
)

// ID identifies a remote's memory of names: a new memory has a new one.
type ID [16]byte

// Token identifies an open stream. Queries carry it, so that the ground knows whose they are. Nobody else can guess it.
type Token [8]byte

// Period numbers the time in which a client has the same hash.
type Period uint16

// Hash stands for a client of a remote. Only the remote has its key, and draws another one for each period.
type Hash uint32

// Hello begins a remote's side of the stream.
type Hello struct {
	ID     ID
	Token  Token
	Period Period
	// Keeps is how long the remote serves a response.
	Keeps time.Duration
}

// Question is a name and a type. The name is fully qualified and in lower case.
type Question struct {
	Name string
	Type uint16
}

// QuestionOf returns what a query asks. False: its response is not sent before it is asked. Those are the types that browsers
// ask before they connect. A query with DO or CD has a response of its own, and one client's validation is no reason to send
// signatures to all.
func QuestionOf(query *dns.Msg) (Question, bool) {
	if query.Opcode != dns.OpcodeQuery || len(query.Question) != 1 || query.CheckingDisabled {
		return Question{}, false
	}
	if opt := query.IsEdns0(); opt != nil && opt.Do() {
		return Question{}, false
	}
	asked := query.Question[0]
	question := Question{Name: dns.CanonicalName(asked.Name), Type: asked.Qtype}
	return question, asked.Qclass == dns.ClassINET && slices.Contains(Types, question.Type)
}

// Types are the types of record whose responses are sent.
var Types = []uint16{dns.TypeA, dns.TypeHTTPS, dns.TypeAAAA}

// Used says that a client asked for a name that was sent before.
type Used struct {
	Client   Hash
	Question Question
}

// AppendHello appends the frame of a remote's hello.
func AppendHello(out []byte, h Hello) []byte {
	body := binary.AppendUvarint(nil, Version)
	body = append(append(body, h.ID[:]...), h.Token[:]...)
	body = binary.BigEndian.AppendUint16(body, uint16(h.Period))
	return frame(out, KindHello, binary.AppendUvarint(body, uint64(h.Keeps/time.Second)))
}

// ReadHello reads the body of a remote's hello.
func ReadHello(body []byte) (Hello, error) {
	var h Hello
	version, n := binary.Uvarint(body)
	if n <= 0 {
		return h, errFrame
	}
	if version != Version {
		return h, ErrVersion
	}
	body = body[n:]
	if len(body) < len(h.ID)+len(h.Token)+2 {
		return h, errFrame
	}
	body = body[copy(h.ID[:], body):]
	body = body[copy(h.Token[:], body):]
	h.Period = Period(binary.BigEndian.Uint16(body))
	seconds, n := binary.Uvarint(body[2:])
	// Not more than the times of a memory hold.
	if n <= 0 || seconds > 1<<31 {
		return h, errFrame
	}
	h.Keeps = time.Duration(seconds) * time.Second
	return h, nil
}

// AppendGroundHello appends the frame of a ground's hello.
func AppendGroundHello(out []byte) []byte {
	return frame(out, KindHello, binary.AppendUvarint(nil, Version))
}

// ReadGroundHello reads the body of a ground's hello.
func ReadGroundHello(body []byte) error {
	version, n := binary.Uvarint(body)
	switch {
	case n <= 0:
		return errFrame
	case version != Version:
		return ErrVersion
	}
	return nil
}

// AppendPeriod appends the frame of a new period.
func AppendPeriod(out []byte, p Period) []byte {
	return frame(out, KindPeriod, binary.BigEndian.AppendUint16(nil, uint16(p)))
}

// ReadPeriod reads the body of a new period.
func ReadPeriod(body []byte) (Period, error) {
	if len(body) != 2 {
		return 0, errFrame
	}
	return Period(binary.BigEndian.Uint16(body)), nil
}

// AppendUsed appends the frame of a use. A name that is none appends nothing.
func AppendUsed(out []byte, u Used) []byte {
	body := make([]byte, 4+2+256)
	binary.BigEndian.PutUint32(body, uint32(u.Client))
	binary.BigEndian.PutUint16(body[4:], u.Question.Type)
	end, err := dns.PackDomainName(u.Question.Name, body, 6, nil, false)
	if err != nil {
		return out
	}
	return frame(out, KindUsed, body[:end])
}

// ReadUsed reads the body of a use.
func ReadUsed(body []byte) (Used, error) {
	if len(body) < 6 {
		return Used{}, errFrame
	}
	name, end, err := dns.UnpackDomainName(body, 6)
	if err != nil || end != len(body) {
		return Used{}, errFrame
	}
	return Used{
		Client:   Hash(binary.BigEndian.Uint32(body)),
		Question: Question{Name: dns.CanonicalName(name), Type: binary.BigEndian.Uint16(body[4:])},
	}, nil
}

// AppendAnswer appends the frame of a response. One that has no wire format appends nothing.
func AppendAnswer(out []byte, m *dns.Msg) []byte {
	sent := *m
	// The identifier is 0, as the stream identifies it (RFC 8484 section 4.1).
	sent.Id, sent.Compress = 0, true
	body, err := sent.Pack()
	if err != nil {
		return out
	}
	return frame(out, KindAnswer, body)
}

// ReadAnswer reads the body of a response.
func ReadAnswer(body []byte) (*dns.Msg, error) {
	m := new(dns.Msg)
	if err := m.Unpack(body); err != nil {
		return nil, errFrame
	}
	return m, nil
}

func frame(out []byte, kind Kind, body []byte) []byte {
	out = binary.AppendUvarint(out, uint64(1+len(body)))
	return append(append(out, byte(kind)), body...)
}

// Reader reads frames.
type Reader struct {
	from *bufio.Reader
	room bytes.Buffer
}

// NewReader returns a reader of the frames of a stream.
func NewReader(from io.Reader) *Reader { return &Reader{from: bufio.NewReader(from)} }

// Next returns the next frame. Its body is valid until the next call. The room for it grows as its bytes come, not by the
// length that the other end promises.
func (r *Reader) Next() (Kind, []byte, error) {
	length, err := binary.ReadUvarint(r.from)
	if err != nil {
		return 0, nil, err
	}
	if length == 0 || length > mostBytes {
		return 0, nil, errFrame
	}
	r.room.Reset()
	if _, err := io.CopyN(&r.room, r.from, int64(length)); err != nil {
		return 0, nil, errors.Join(errFrame, err)
	}
	body := r.room.Bytes()
	return Kind(body[0]), body[1:], nil
}
