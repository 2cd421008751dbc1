package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"example.org/longhaul/origins/content"
)

// specialPrefix begins the paths whose requests describe their own response. Defaults stand in parentheses:
//
//	/_/echo                 the request as it arrived, with the length of its body, as JSON
//	/_/answer?KEY=VALUE&..  a response made to order, right or wrong:
//
//	  body=page|sheet|noise|none   kind of the body (page)
//	  host=NAME                    host of objects in the page or style sheet, may repeat
//	  size=BYTES                   length of the body, filled up with text or cut (one round of objects)
//	  status=CODE                  status (200)
//	  type=CONTENT-TYPE            Content-Type (that of the body; "none" omits the field)
//	  encode=gzip|br               compresses the body, and sets Content-Encoding
//	  declare=ENCODING             sets Content-Encoding without compression: a lie
//	  cut=BYTES                    declares the whole length, and ends the connection after so many bytes
//	  wait=MS                      sends nothing for so long, or until the client goes
//	  until=NAME                   sends nothing until that gate is opened, or the client goes
//	  chunk=BYTES, pause=MS        sends the body in pieces, with a pause after each
//	  gate=NAME                    sends one more piece each time the gate is opened, after the first
//	  header=NAME:VALUE            a further header field, may repeat
//
//	/_/open?gate=NAME       opens a gate once more
//
// One handler composes all kinds of trouble, so that tests of new kinds need no new code here.
const specialPrefix = "/_/"

func serveSpecial(w http.ResponseWriter, r *http.Request) {
	switch strings.TrimPrefix(r.URL.Path, specialPrefix) {
	case "echo":
		serveEcho(w, r)
	case "answer":
		order, err := parseOrder(r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		order.serve(w, r)
	case "open":
		gates.at(r.URL.Query().Get("gate")).open()
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "special paths are /_/echo, /_/answer and /_/open", http.StatusNotFound)
	}
}

func serveEcho(w http.ResponseWriter, r *http.Request) {
	length, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"method": r.Method, "host": r.Host, "target": r.RequestURI, "proto": r.Proto, "tls": r.TLS != nil, "header": r.Header,
		"length": length,
	})
}

// order is a response made to order, after its check.
type order struct {
	body        []byte
	status      int
	contentType string
	coding      string
	cut         int
	chunk       int
	wait        time.Duration
	pause       time.Duration
	until       string
	gate        string
	header      []string
}

func parseOrder(query url.Values) (*order, error) {
	known := map[string]bool{
		"body": true, "host": true, "size": true, "status": true, "type": true, "encode": true, "declare": true,
		"cut": true, "wait": true, "until": true, "chunk": true, "pause": true, "gate": true, "header": true,
	}
	numbers := map[string]int{"size": -1, "status": http.StatusOK, "cut": -1, "wait": 0, "chunk": 0, "pause": 0}
	for key := range query {
		if !known[key] {
			return nil, fmt.Errorf("unknown key %q", key)
		}
		if _, numeric := numbers[key]; numeric {
			number, err := strconv.Atoi(query.Get(key))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			numbers[key] = number
		}
	}
	o := &order{
		status: numbers["status"], cut: numbers["cut"], chunk: numbers["chunk"],
		wait: time.Duration(numbers["wait"]) * time.Millisecond, pause: time.Duration(numbers["pause"]) * time.Millisecond,
		until: query.Get("until"), gate: query.Get("gate"), header: query["header"],
	}
	var err error
	if o.body, o.contentType, err = makeBody(query.Get("body"), query["host"], numbers["size"]); err != nil {
		return nil, err
	}
	if query.Has("type") {
		o.contentType = query.Get("type")
	}
	if o.coding = query.Get("encode"); o.coding != "" {
		o.body = compress(o.body, o.coding)
	}
	if query.Has("declare") {
		o.coding = query.Get("declare")
	}
	return o, nil
}

func makeBody(name string, hosts []string, size int) (body []byte, contentType string, err error) {
	switch name {
	case "", "page":
		return fitted("<!doctype html>\n<html><head><title>made to order</title></head>\n<body>\n", pageRound(hosts), size), "text/html; charset=utf-8", nil
	case "sheet":
		return fitted("", sheetRound(hosts), size), "text/css", nil
	case "noise":
		made, _ := content.Make(content.JPEG, "noise", max(size, 1000))
		return made, "application/octet-stream", nil
	case "none":
		return nil, "text/html; charset=utf-8", nil
	}
	return nil, "", fmt.Errorf("unknown body %q", name)
}

// pageRound returns markup with one object of each common kind on every host.
func pageRound(hosts []string) string {
	var out strings.Builder
	for i, host := range hosts {
		fmt.Fprintf(&out, "<p>Object %d: <img src=\"http://%s/made/%d.png\" alt=\"\">", i, host, i)
		fmt.Fprintf(&out, "<script src=\"http://%s/made/%d.js\"></script>", host, i)
		fmt.Fprintf(&out, "<a href=\"http://%s/made/%d.html\">a link, not an object</a></p>\n", host, i)
	}
	out.WriteString("<p>plain text between objects, nothing to see here</p>\n")
	return out.String()
}

func sheetRound(hosts []string) string {
	var out strings.Builder
	for i, host := range hosts {
		fmt.Fprintf(&out, ".made-%d { background: url(http://%s/made/%d.png) }\n", i, host, i)
	}
	out.WriteString(".plain { color: teal }\n")
	return out.String()
}

// fitted repeats round behind head and cuts the result at size. A negative size gives one round.
func fitted(head, round string, size int) []byte {
	if size < 0 {
		return []byte(head + round)
	}
	out := bytes.NewBuffer(make([]byte, 0, size+len(round)))
	out.WriteString(head)
	for out.Len() < size {
		out.WriteString(round)
	}
	return out.Bytes()[:size]
}

func (o *order) serve(w http.ResponseWriter, r *http.Request) {
	if o.wait > 0 {
		select {
		case <-time.After(o.wait):
		case <-r.Context().Done():
			return
		}
	}
	if o.until != "" && !gates.at(o.until).pass(r.Context(), 1) {
		return
	}
	header := w.Header()
	if o.contentType == "none" {
		header["Content-Type"] = nil // nil keeps net/http from guessing one
	} else {
		header.Set("Content-Type", o.contentType)
	}
	if o.coding != "" {
		header.Set("Content-Encoding", o.coding)
	}
	for _, line := range o.header {
		name, value, _ := strings.Cut(line, ":")
		header.Add(name, strings.TrimSpace(value))
	}
	mayHaveBody := o.status != http.StatusNoContent && o.status != http.StatusNotModified
	if mayHaveBody && o.chunk == 0 {
		header.Set("Content-Length", strconv.Itoa(len(o.body)))
	}
	w.WriteHeader(o.status)
	if mayHaveBody && r.Method != http.MethodHead {
		o.sendBody(w, r)
	}
}

func (o *order) sendBody(w http.ResponseWriter, r *http.Request) {
	rest := o.body
	if o.cut >= 0 && o.cut < len(rest) {
		rest = rest[:o.cut]
	}
	piece := o.chunk
	if piece <= 0 {
		piece = len(rest)
	}
	flusher := http.NewResponseController(w)
	for sent := 1; len(rest) > 0; sent++ {
		n := min(piece, len(rest))
		if _, err := w.Write(rest[:n]); err != nil {
			return
		}
		rest = rest[n:]
		if o.pause > 0 || o.cut >= 0 || o.gate != "" {
			_ = flusher.Flush()
		}
		if o.gate != "" && len(rest) > 0 && !gates.at(o.gate).pass(r.Context(), sent) {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(o.pause):
		}
	}
	if o.cut >= 0 {
		panic(http.ErrAbortHandler) // net/http's way to end a connection in the middle of a response
	}
}
