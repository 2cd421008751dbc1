package store

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"

	"example.org/longhaul/coredns-plugin/internal/whole"
)

// magic begins a file of responses, with the number of its format. Then come the records, a record of length 0, and CRC-32C
// of everything before.
const magic = "longhaul names 1\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errTorn = errors.New("the file is not whole")

// Save writes all responses to path. The file is whole at any time, and only its owner can read it, because it says which names
// clients asked for.
func (s *Store) Save(path string) error { return whole.Write(path, s.write) }

// write writes the file. Queries wait for the copy of a block in memory, but not for the disk.
func (s *Store) write(file io.Writer) error {
	sum := crc32.New(castagnoli)
	out := io.MultiWriter(file, sum)
	if _, err := io.WriteString(out, magic); err != nil {
		return err
	}
	var buf []byte
	for _, number := range s.oldestFirst() {
		buf = s.records(buf[:0], number)
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
	if _, err := out.Write([]byte{0, 0}); err != nil {
		return err
	}
	_, err := file.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

// Load returns a store with the responses in the file at path. The error says why there are none. If there is no file, the
// error is os.ErrNotExist.
func Load(path string, limit int) (*Store, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return read(file, limit)
}

// read reads a file of responses, all of it or nothing.
func read(file io.Reader, limit int) (*Store, error) {
	in := summed{from: bufio.NewReaderSize(file, block), sum: crc32.New(castagnoli)}
	begin := make([]byte, len(magic))
	if err := in.fill(begin); err != nil {
		return nil, err
	}
	if !bytes.Equal(begin, []byte(magic)) {
		return nil, errors.New("it is not a file of names, or of another release")
	}
	s := New(limit)
	record := make([]byte, header+MaxWire)
	for {
		if err := in.fill(record[:2]); err != nil {
			return nil, err
		}
		length := wireLength(record)
		if length == 0 {
			if err := in.end(); err != nil {
				return nil, err
			}
			return s, nil
		}
		if length > MaxWire {
			return nil, fmt.Errorf("it has a response of %d bytes", length)
		}
		if err := in.fill(record[2 : header+length]); err != nil {
			return nil, err
		}
		answer := decode(record)
		if answer.Flags&^known != 0 || answer.Expires < answer.Stored || !s.Put(answer) {
			return nil, errors.New("it has a response that cannot be read")
		}
	}
}

// summed reads and sums up.
type summed struct {
	from *bufio.Reader
	sum  hash.Hash32
}

func (s *summed) fill(buf []byte) error {
	if _, err := io.ReadFull(s.from, buf); err != nil {
		return torn(err)
	}
	_, _ = s.sum.Write(buf)
	return nil
}

// end returns an error unless the file ends with its sum.
func (s *summed) end() error {
	var sum [4]byte
	if _, err := io.ReadFull(s.from, sum[:]); err != nil {
		return torn(err)
	}
	if binary.LittleEndian.Uint32(sum[:]) != s.sum.Sum32() {
		return errors.New("its checksum is wrong")
	}
	if _, err := s.from.ReadByte(); err != io.EOF {
		return errors.New("there is something behind its end")
	}
	return nil
}

func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}
