package main

import (
	"encoding/binary"
	"errors"
	"io"
	"path"
	"strconv"

	"golang.org/x/crypto/ssh"
)

// Packets and status codes of version 3 (draft-ietf-secsh-filexfer-02 sections 3, 5 and 7).
const (
	packetInit     = 1
	packetVersion  = 2
	packetOpen     = 3
	packetClose    = 4
	packetRead     = 5
	packetLstat    = 7
	packetFstat    = 8
	packetRealpath = 16
	packetStat     = 17
	packetStatus   = 101
	packetHandle   = 102
	packetData     = 103
	packetName     = 104
	packetAttrs    = 105

	statusOK          = 0
	statusEOF         = 1
	statusNoSuchFile  = 2
	statusUnsupported = 8

	version      = 3
	largestInput = 1 << 18
	largestRead  = 1 << 15
	hasSize      = 1
	hasMode      = 4
	regularFile  = 0o100444
)

var errPacket = errors.New("a packet that is no SFTP")

// reply is the body of a response, without its request's number.
type reply struct {
	kind byte
	body []byte
}

// serveFiles serves the sftp subsystem, read-only. A handle is the path of its file.
func serveFiles(channel io.ReadWriter) error {
	for {
		kind, body, err := readPacket(channel)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind == packetInit {
			err = writePacket(channel, packetVersion, binary.BigEndian.AppendUint32(nil, version))
		} else {
			if len(body) < 4 {
				return errPacket
			}
			answer := respond(kind, body[4:])
			err = writePacket(channel, answer.kind, append(body[:4:4], answer.body...))
		}
		if err != nil {
			return err
		}
	}
}

func readPacket(from io.Reader) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[:4])
	if length < 1 || length > largestInput {
		return 0, nil, errPacket
	}
	body := make([]byte, length-1)
	_, err := io.ReadFull(from, body)
	return head[4], body, err
}

func writePacket(to io.Writer, kind byte, body []byte) error {
	packet := binary.BigEndian.AppendUint32(nil, uint32(len(body)+1)) //nolint:gosec // a body is at most 32 KiB
	_, err := to.Write(append(append(packet, kind), body...))
	return err
}

func respond(kind byte, body []byte) reply {
	var named struct {
		Path string
		Rest []byte `ssh:"rest"`
	}
	if ssh.Unmarshal(body, &named) != nil {
		return status(statusUnsupported)
	}
	size, err := strconv.ParseInt(path.Base(named.Path), 10, 64)
	switch kind {
	case packetRealpath:
		return reply{packetName, ssh.Marshal(struct {
			Count      uint32
			Path, Long string
			Attributes uint32
		}{1, path.Join("/", named.Path), named.Path, 0})}
	case packetClose:
		return status(statusOK)
	case packetOpen, packetStat, packetLstat, packetFstat, packetRead:
		if err != nil {
			return status(statusNoSuchFile)
		}
	default:
		return status(statusUnsupported)
	}
	switch kind {
	case packetOpen:
		return reply{packetHandle, ssh.Marshal(struct{ Handle string }{named.Path})}
	case packetRead:
		return read(size, named.Rest)
	}
	return reply{packetAttrs, ssh.Marshal(struct {
		Flags uint32
		Size  uint64
		Mode  uint32
	}{hasSize | hasMode, uint64(size), regularFile})} //nolint:gosec // a size in a name is not negative
}

func read(size int64, body []byte) reply {
	var part struct {
		Offset uint64
		Length uint32
	}
	if ssh.Unmarshal(body, &part) != nil || part.Offset >= uint64(size) { //nolint:gosec // see respond
		return status(statusEOF)
	}
	length := min(uint64(part.Length), uint64(size)-part.Offset, largestRead) //nolint:gosec // see respond
	data := make([]byte, length)
	_, _ = pattern{}.ReadAt(data, int64(part.Offset)) //nolint:gosec // it is below size
	return reply{packetData, ssh.Marshal(struct{ Data []byte }{data})}
}

func status(code uint32) reply {
	return reply{packetStatus, ssh.Marshal(struct {
		Code              uint32
		Message, Language string
	}{code, "", ""})}
}
