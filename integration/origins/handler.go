package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/brotli"

	"example.org/longhaul/origins/content"
)

// published is the Last-Modified of everything here: fixed, so that two runs give the same answers.
var published = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// minCompressBytes is where servers commonly begin to compress.
const minCompressBytes = 256

// Handler answers for all sites. Which site is meant is the Host header's word, but it must agree with the address that
// was dialled: a proxy that confuses origins gets 421 and the test that looks, a line in the log.
type Handler struct {
	site *Site
	log  *Log

	mu     sync.Mutex
	bodies map[string]*body
}

// body is an object ready to send, with its compressed forms made when first asked for.
type body struct {
	bytes       []byte
	contentType string
	etag        string
	encoded     map[string][]byte
}

// NewHandler returns the handler of a site.
func NewHandler(site *Site, log *Log) *Handler {
	return &Handler{site: site, log: log, bodies: map[string]*body{}}
}

// ServeHTTP implements http.Handler: it logs, then answers.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event := Event{
		Event: "request", Scheme: "http", Proto: r.Proto, Method: r.Method, Host: r.Host, Target: r.RequestURI,
		Header: r.Header, Remote: r.RemoteAddr, Local: localAddress(r).String(),
	}
	if r.TLS != nil {
		event.Scheme = "https"
	}
	h.log.Write(event)
	counted := &countingWriter{ResponseWriter: w, status: http.StatusOK}
	defer func() {
		event.Event, event.Header, event.Status, event.Bytes = "answer", nil, counted.status, counted.bytes
		h.log.Write(event)
	}()
	h.answer(counted, r, event.Scheme)
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request, scheme string) {
	name := strings.ToLower(r.Host)
	if bare, _, err := net.SplitHostPort(name); err == nil {
		name = bare
	}
	host, served := h.site.Hosts[name]
	if !served || h.site.address[name] != localAddress(r).Addr() {
		http.Error(w, "no such site at this address", http.StatusMisdirectedRequest)
		return
	}
	if host.Special && strings.HasPrefix(r.URL.Path, specialPrefix) {
		serveSpecial(w, r)
		return
	}
	if object, ok := h.site.objects[name][canonical(r.URL.RequestURI())]; ok {
		h.send(w, r, name, object)
		return
	}
	if host.Root != "" {
		if file := find(host.Root, r.URL.Path); file != "" {
			h.send(w, r, name, Object{File: file})
			return
		}
	}
	if host.Generate {
		h.send(w, r, name, Object{})
		return
	}
	http.Error(w, "no such object: "+scheme+"://"+r.Host+r.RequestURI, http.StatusNotFound)
}

// find returns the file for a path below root, or nothing.
func find(root, urlPath string) string {
	file := filepath.Join(root, filepath.FromSlash(path.Clean("/"+urlPath)))
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		file = filepath.Join(file, "index.html")
		info, err = os.Stat(file)
	}
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return file
}

// send answers with an object: conditional and range requests, HEAD and compression as a well-run server does them.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, name string, object Object) {
	made, err := h.body(name, r, object)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", made.contentType)
	header.Set("ETag", made.etag)
	header.Set("Cache-Control", cachePolicy(made.contentType))
	for _, more := range []map[string]string{h.site.Hosts[name].Header, object.Header} {
		for key, value := range more {
			header.Set(key, value)
		}
	}
	bytesOut := made.bytes
	if !object.Plain && compressible(made.contentType, len(made.bytes)) {
		header.Add("Vary", "Accept-Encoding")
		if encoding := chooseEncoding(r); encoding != "" {
			header.Set("Content-Encoding", encoding)
			header.Set("ETag", strings.TrimSuffix(made.etag, `"`)+"-"+encoding+`"`)
			bytesOut = h.encode(made, encoding)
		}
	}
	http.ServeContent(w, r, "", published, bytes.NewReader(bytesOut))
}

// cachePolicy: pages are asked for again, what they are made of may be kept.
func cachePolicy(contentType string) string {
	if strings.HasPrefix(contentType, "text/html") {
		return "no-cache"
	}
	return "public, max-age=86400"
}

// compressible: text that is worth it.
func compressible(contentType string, bytes int) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	text := strings.HasPrefix(kind, "text/") || kind == "application/javascript" || kind == "application/json" || kind == "image/svg+xml"
	return text && bytes >= minCompressBytes
}

func chooseEncoding(r *http.Request) string {
	if r.Header.Get("Range") != "" {
		return ""
	}
	accepted := map[string]bool{}
	for _, item := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		coding, quality, _ := strings.Cut(strings.TrimSpace(item), ";")
		accepted[coding] = strings.ReplaceAll(quality, " ", "") != "q=0"
	}
	for _, coding := range []string{"br", "gzip"} {
		if accepted[coding] {
			return coding
		}
	}
	return ""
}

// body makes or reads an object once. Folder files are read each time, so that a page can be edited while it is served.
func (h *Handler) body(name string, r *http.Request, object Object) (*body, error) {
	if object.File != "" {
		raw, err := os.ReadFile(object.File)
		if err != nil {
			return nil, err
		}
		contentType := mime.TypeByExtension(filepath.Ext(object.File))
		if contentType == "" {
			contentType = http.DetectContentType(raw)
		}
		return newBody(raw, contentType), nil
	}
	key := name + canonical(r.URL.RequestURI())
	h.mu.Lock()
	defer h.mu.Unlock()
	if made, ok := h.bodies[key]; ok {
		return made, nil
	}
	kind := object.Kind
	if kind == "" {
		kind = content.KindOf(r.URL.Path, r.Header.Get("Accept"))
	}
	made := newBody(generate(kind, key, object))
	h.bodies[key] = made
	return made, nil
}

// generate makes a body of the size that is asked for, compressed or not.
func generate(kind content.Kind, key string, object Object) (raw []byte, contentType string) {
	raw, contentType = content.Make(kind, key, max(object.Bytes, object.TransferBytes))
	if object.TransferBytes == 0 || !compressible(contentType, len(raw)) {
		return raw, contentType
	}
	// Made text compresses by much the same factor whatever its length, so a few corrections in proportion meet the size.
	const tries, tolerance = 6, 0.01
	for range tries {
		off := float64(len(compress(raw, "br"))) / float64(object.TransferBytes)
		if math.Abs(off-1) < tolerance {
			break
		}
		raw, contentType = content.Make(kind, key, int(float64(len(raw))/off))
	}
	return raw, contentType
}

func newBody(raw []byte, contentType string) *body {
	return &body{bytes: raw, contentType: contentType, etag: fmt.Sprintf(`"%016x"`, content.Seed(string(raw))), encoded: map[string][]byte{}}
}

func (h *Handler) encode(made *body, encoding string) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if done, ok := made.encoded[encoding]; ok {
		return done
	}
	made.encoded[encoding] = compress(made.bytes, encoding)
	return made.encoded[encoding]
}

// compress applies a content coding at a level usual for content made on the fly.
func compress(raw []byte, encoding string) []byte {
	var out bytes.Buffer
	if encoding == "br" {
		writer := brotli.NewWriterLevel(&out, 5)
		_, _ = writer.Write(raw)
		_ = writer.Close()
	} else {
		writer := gzip.NewWriter(&out)
		_, _ = writer.Write(raw)
		_ = writer.Close()
	}
	return out.Bytes()
}

func localAddress(r *http.Request) netip.AddrPort {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return netip.AddrPort{}
	}
	address, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
}

// countingWriter remembers status and size of an answer for the log.
type countingWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader implements http.ResponseWriter.
func (c *countingWriter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (c *countingWriter) Write(part []byte) (int, error) {
	n, err := c.ResponseWriter.Write(part)
	c.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach Flush and Hijack of the connection.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
