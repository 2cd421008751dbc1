package main

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

// Event is one line of the log: what a test may assert about what reached the origins.
type Event struct {
	// Time is in seconds since the epoch.
	Time float64 `json:"time"`
	// Event is "query", "connect", "request" (head arrived) or "answer" (request ended).
	Event  string `json:"event"`
	Remote string `json:"remote,omitempty"`
	Local  string `json:"local,omitempty"`

	Name string `json:"name,omitempty"` // query
	Type string `json:"type,omitempty"` // query

	Scheme string              `json:"scheme,omitempty"`
	Proto  string              `json:"proto,omitempty"`
	Method string              `json:"method,omitempty"`
	Host   string              `json:"host,omitempty"`
	Target string              `json:"target,omitempty"` // path and query as sent
	Header map[string][]string `json:"header,omitempty"`
	Status int                 `json:"status,omitempty"` // answer
	Bytes  int64               `json:"bytes,omitempty"`  // answer: body bytes handed to the connection
}

// Log writes events as JSON lines, each at once: a test reads them while the program runs.
type Log struct {
	mu   sync.Mutex
	file *os.File
}

// OpenLog truncates the file at path; an empty path makes a log that drops everything.
func OpenLog(path string) (*Log, error) {
	if path == "" {
		return &Log{}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &Log{file: file}, nil
}

// Write appends one event and stamps it with the time.
func (l *Log) Write(event Event) {
	if l.file == nil {
		return
	}
	event.Time = float64(time.Now().UnixMicro()) / 1e6
	line, err := json.Marshal(event)
	if err != nil {
		panic(err) // every field is a string, a number or a map of strings
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		panic(err) // a log with holes would make tests pass that must fail
	}
}

// Close ends the log.
func (l *Log) Close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}
