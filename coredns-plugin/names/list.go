package names

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// format is how a list file is written. A file is of one format throughout; its first line that is not blank or a comment
// tells which.
type format uint8

const (
	// plain has one entry a line: example.org, =example.org or *.example.org.
	plain format = iota + 1
	// hosts is the format of /etc/hosts: an address, which is ignored, and names, each standing for itself only.
	hosts
)

// List is what a list file says.
type List struct {
	Names *Set
	// Terminated says that the file ends in a newline. A file that used to and no longer does is half written.
	Terminated bool
}

// Error says what is wrong with a list file and where.
type Error struct {
	File    string
	Line    int // from 1; 0 when the file as a whole is meant
	Column  int // in bytes, from 1; 0 when the line as a whole is meant
	Problem error
}

func (e *Error) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, e.Line)
	}
	if e.Column > 0 {
		where = fmt.Sprintf("%s:%d", where, e.Column)
	}
	return where + ": " + e.Problem.Error()
}

func (e *Error) Unwrap() error { return e.Problem }

const (
	maxLineBytes = 64 << 10
	// allowEmpty is the comment by which a file says that it is meant to hold no names.
	allowEmpty = "allow-empty"
)

var (
	errEmpty   = errors.New(`no names in the file; if that is meant, say so with a comment line "# ` + allowEmpty + `"`)
	errTooLong = fmt.Errorf("line longer than %d bytes", maxLineBytes)
)

// Parse reads a list to its end. Any line that is not understood refuses the whole list with an *Error: a list half taken
// over would steer names by accident of where it broke. sizeHint is the expected size in bytes. A giveWay that is not nil is
// called every tenth of a millisecond or so, for callers that have more urgent things to do than a list of a million names.
func Parse(r io.Reader, file string, sizeHint int, giveWay func()) (*List, error) {
	// A plain list's names take a byte more each than in the file. Without room for it all would be copied at the end.
	room := sizeHint + sizeHint/8
	p := &parser{file: file, in: bufio.NewReaderSize(r, maxLineBytes), names: NewBuilder(room)}
	p.names.giveWay = giveWay
	if bom, _ := p.in.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		if _, err := p.in.Discard(3); err != nil {
			return nil, p.fail(0, err)
		}
	}
	if err := p.run(); err != nil {
		return nil, err
	}
	if p.names.Len() == 0 && !p.mayBeEmpty {
		p.line = 0
		return nil, p.fail(0, errEmpty)
	}
	return &List{Names: p.names.Set(), Terminated: p.terminated}, nil
}

type parser struct {
	file       string
	in         *bufio.Reader
	line       int // number of the line read last
	format     format
	names      *Builder
	mayBeEmpty bool
	terminated bool
}

func (p *parser) fail(column int, problem error) error {
	return &Error{File: p.file, Line: p.line, Column: column, Problem: problem}
}

func (p *parser) run() error {
	for {
		line, err := p.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return p.fail(0, err)
		}
		text := p.strip(line)
		if len(text) == 0 {
			continue
		}
		if p.format == 0 {
			p.format = formatOf(text)
		}
		read := p.plain
		if p.format == hosts {
			read = p.hosts
		}
		if err := read(line, text); err != nil {
			return err
		}
	}
}

// next returns the next line with its newline, if it has one. It is valid until the next call.
func (p *parser) next() ([]byte, error) {
	line, err := p.in.ReadSlice('\n')
	switch {
	case err == bufio.ErrBufferFull:
		p.line++
		return nil, errTooLong
	case err == io.EOF && len(line) > 0:
		err = nil
	case err != nil:
		return nil, err
	}
	p.line++
	p.terminated = line[len(line)-1] == '\n'
	return line, err
}

// strip returns line without its comment and the blanks around it. Before the first name, a line that begins with a
// semicolon is a comment, too.
func (p *parser) strip(line []byte) []byte {
	text := line
	if i := bytes.IndexByte(text, '#'); i >= 0 {
		p.comment(text[i+1:])
		text = text[:i]
	}
	text = trim(text)
	if p.format == 0 && len(text) > 0 && text[0] == ';' {
		p.comment(text[1:])
		return nil
	}
	return text
}

func (p *parser) comment(text []byte) {
	if string(trim(text)) == allowEmpty {
		p.mayBeEmpty = true
	}
}

// trim cuts the blanks that occur in text files; unlike bytes.TrimSpace it never looks for others.
func trim(text []byte) []byte {
	for len(text) > 0 && isBlank(text[0]) {
		text = text[1:]
	}
	for len(text) > 0 && isBlank(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// formatOf tells the format by the first line that says anything: a hosts file's has an address and words.
func formatOf(text []byte) format {
	if end := bytes.IndexAny(text, " \t"); end >= 0 {
		if _, err := netip.ParseAddr(string(text[:end])); err == nil {
			return hosts
		}
	}
	return plain
}

var errWords = errors.New("more than one word; expected one name a line, or a hosts file, which has an address first. " +
	"README.md says how to convert the zone file of a response policy zone")

func (p *parser) plain(line, text []byte) error {
	if i := bytes.IndexAny(text, " \t"); i >= 0 {
		return p.fail(columnOf(line, text)+i, errWords)
	}
	if err := p.names.addEntry(text); err != nil {
		return p.fail(columnOf(line, text), err)
	}
	return nil
}

func (p *parser) hosts(line, text []byte) error {
	address, rest := cutWord(text)
	if _, err := netip.ParseAddr(string(address)); err != nil {
		return p.fail(columnOf(line, text), fmt.Errorf("found %q; this is a hosts file, expected an address first", address))
	}
	if len(rest) == 0 {
		return p.fail(columnOf(line, text), errors.New("an address without a name"))
	}
	for len(rest) > 0 {
		var name []byte
		name, rest = cutWord(rest)
		// Every hosts file begins with localhost and its like: the machine's own names, which nobody means to list.
		if bytes.IndexByte(name, '.') < 0 || string(name) == "localhost.localdomain" || string(name) == "0.0.0.0" {
			continue
		}
		if err := p.names.addName(name, Self); err != nil {
			return p.fail(columnOf(line, name), err)
		}
	}
	return nil
}

// cutWord returns the first word of text and what follows it, without the blanks between.
func cutWord(text []byte) (word, rest []byte) {
	if i := bytes.IndexAny(text, " \t"); i >= 0 {
		return text[:i], trim(text[i:])
	}
	return text, nil
}

// columnOf returns the column, from 1, at which part begins in line, of which it is a part.
func columnOf(line, part []byte) int { return cap(line) - cap(part) + 1 }
