package main

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

// Event is one line of the log. Tests assert from it what reached the origins.
type Event struct {
	// Time is Unix time, in seconds.
	Time float64 `json:"time"`
	// Event is "query", "connect", "request" (its header arrived) or "answer" (its response ended).
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

// Log writes events as JSON lines, each at once, because tests read them while the program runs.
type Log struct {
	mu   sync.Mutex
	file *os.File
}

// OpenLog truncates the file at path. An empty path gives a log that drops everything.
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

// Write stamps one event with the time and appends it.
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

// Close closes the file.
func (l *Log) Close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}
