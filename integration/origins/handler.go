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

// published is the Last-Modified of every object. It is fixed, so that two runs give the same responses.
var published = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// minCompressBytes is the size from which servers commonly compress.
const minCompressBytes = 256

// Handler responds for all sites. The Host field names the site, but must agree with the address that the client
// connected to. A proxy that confuses origins gets a 421, or the status that the manifest has for the address. A test
// finds that in the log.
type Handler struct {
	site *Site
	log  *Log

	mu     sync.Mutex
	bodies map[string]*body
}

// body is an object ready to send. Its compressed forms are made at the first request for them.
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

// ServeHTTP implements http.Handler. It logs the request, then responds.
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
		status := http.StatusMisdirectedRequest
		if own, ok := h.site.misdirected[localAddress(r).Addr()]; ok {
			status = own
		}
		http.Error(w, "no such site at this address", status)
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

// find returns the file for a path below root, or an empty string.
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

// send responds with an object. It handles conditional and range requests, HEAD and compression as a well-run server
// does.
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

// cachePolicy makes caches validate pages, and lets them keep the objects of pages.
func cachePolicy(contentType string) string {
	if strings.HasPrefix(contentType, "text/html") {
		return "no-cache"
	}
	return "public, max-age=86400"
}

// compressible returns true for text that is long enough.
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

// body makes or reads an object. It makes an object once, but reads a file each time, so that a page can be edited
// while it is served.
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

// generate makes a body of the requested size, before or after compression.
func generate(kind content.Kind, key string, object Object) (raw []byte, contentType string) {
	raw, contentType = content.Make(kind, key, max(object.Bytes, object.TransferBytes))
	if object.TransferBytes == 0 || !compressible(contentType, len(raw)) {
		return raw, contentType
	}
	// The compression ratio of made text hardly depends on its length, so a few corrections in proportion meet the size.
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

// compress applies a content encoding, at a level that is usual for dynamic content.
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

// countingWriter keeps the status and size of a response for the log.
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
