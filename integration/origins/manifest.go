package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"example.org/longhaul/origins/content"
)

// Manifest is the file as written. Names are in lower case, without a final dot. Paths are relative to the manifest.
type Manifest struct {
	// DNS lists the address:port pairs of the name server, for UDP and TCP.
	DNS []string `json:"dns"`
	// HTTPPort and HTTPSPort are opened on the address of every host. 0 omits that scheme.
	HTTPPort  uint16 `json:"http_port"`
	HTTPSPort uint16 `json:"https_port"`
	// HTTP3Port is opened for QUIC on the address of every host. Responses over TLS announce it in Alt-Svc.
	HTTP3Port uint16 `json:"http3_port"`
	// CA signs a certificate for every host. HTTPSPort and HTTP3Port need it.
	CA    *KeyFiles       `json:"ca"`
	Hosts map[string]Host `json:"hosts"`
	// Records are further addresses (A and AAAA) of names. This program need not serve the names.
	Records map[string][]string `json:"records"`
}

// KeyFiles holds the paths of a PEM certificate and its PEM key.
type KeyFiles struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Host is one web site.
type Host struct {
	Address string `json:"address"`
	// AAAA and HTTPSRecord add records that many of today's names have. A proxy that steers by A records must handle them.
	AAAA        string `json:"aaaa"`
	HTTPSRecord bool   `json:"https_record"`
	// Certificate lists the names in the host's certificate, such as "*.page.test". Hosts with the same list share it.
	// An empty list is the host's own name.
	Certificate []string `json:"certificate"`
	// Misdirected is the status of requests at the host's address for names that no host has there. 0 is 421. Many
	// servers of today respond 404.
	Misdirected int `json:"misdirected"`
	// Root is a folder of files, served by their path. A folder's index.html stands for the folder.
	Root string `json:"root"`
	// Objects are served by path and query, before Root.
	Objects map[string]Object `json:"objects"`
	// Generate serves an object for every other path, instead of a 404. Path and Accept choose its kind.
	Generate bool `json:"generate"`
	// Header holds fields of every object of the host, such as Access-Control-Allow-Origin.
	Header map[string]string `json:"header"`
	// Special opens the paths under /_/, whose requests describe their own response (special.go).
	Special bool `json:"special"`
}

// Object is a file or a generated body.
type Object struct {
	File string `json:"file"`
	// Kind is the kind to generate. If empty, path and Accept choose it.
	Kind content.Kind `json:"kind"`
	// Bytes is the size of a generated body. 0 draws one that is usual for the kind.
	Bytes int `json:"bytes"`
	// TransferBytes is the size of a generated text after compression (brotli), within 2 %. It replaces Bytes, because
	// published page weights count the bytes that cross the network.
	TransferBytes int `json:"transfer_bytes"`
	// Plain turns compression off. Most servers did not compress when the papers measured.
	Plain  bool              `json:"plain"`
	Header map[string]string `json:"header"`
}

// Site is a checked manifest, with its paths and addresses resolved.
type Site struct {
	Manifest
	ca      *tls.Certificate
	address map[string]netip.Addr
	aaaa    map[string]netip.Addr
	records map[string][]netip.Addr
	// misdirected has the addresses with a status of their own for names that they do not serve.
	misdirected map[netip.Addr]int
	objects     map[string]map[string]Object // host -> canonical path and query
}

// LoadSite reads and checks a manifest. Unknown keys are errors, because a test with a misspelt key must not pass.
func LoadSite(path string) (*Site, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	site := &Site{
		address:     map[string]netip.Addr{},
		aaaa:        map[string]netip.Addr{},
		records:     map[string][]netip.Addr{},
		misdirected: map[netip.Addr]int{},
		objects:     map[string]map[string]Object{},
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&site.Manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	folder := filepath.Dir(path)
	for name, host := range site.Hosts {
		if err := site.addHost(folder, name, host); err != nil {
			return nil, fmt.Errorf("%s: host %s: %w", path, name, err)
		}
	}
	for name, addresses := range site.Records {
		for _, text := range addresses {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("%s: record %s: %w", path, name, err)
			}
			site.records[name] = append(site.records[name], address)
		}
	}
	if site.HTTPSPort != 0 || site.HTTP3Port != 0 {
		if site.CA == nil {
			return nil, fmt.Errorf("%s: https_port is set but ca is not: nothing could sign the certificates", path)
		}
		ca, err := tls.LoadX509KeyPair(under(folder, site.CA.Cert), under(folder, site.CA.Key))
		if err != nil {
			return nil, fmt.Errorf("%s: ca: %w", path, err)
		}
		site.ca = &ca
	}
	return site, nil
}

func (s *Site) addHost(folder, name string, host Host) error {
	if name != strings.ToLower(name) || strings.HasSuffix(name, ".") {
		return fmt.Errorf("write the name in lower case and without a final dot")
	}
	address, err := netip.ParseAddr(host.Address)
	if err != nil {
		return err
	}
	s.address[name] = address
	if host.Misdirected != 0 {
		if other, ok := s.misdirected[address]; ok && other != host.Misdirected {
			return fmt.Errorf("another host at %s has misdirected %d, not %d", address, other, host.Misdirected)
		}
		s.misdirected[address] = host.Misdirected
	}
	if host.AAAA != "" {
		v6, err := netip.ParseAddr(host.AAAA)
		if err != nil {
			return err
		}
		s.aaaa[name] = v6
	}
	if host.Root != "" {
		host.Root = under(folder, host.Root)
		info, err := os.Stat(host.Root)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("root %s is not a folder", host.Root)
		}
	}
	s.objects[name] = map[string]Object{}
	for target, object := range host.Objects {
		if object.File != "" {
			object.File = under(folder, object.File)
			if _, err := os.Stat(object.File); err != nil {
				return err
			}
		} else if object.Kind != "" && !object.Kind.Known() {
			return fmt.Errorf("object %s: unknown kind %q, known are %v", target, object.Kind, content.Kinds())
		}
		s.objects[name][canonical(target)] = object
	}
	s.Hosts[name] = host
	return nil
}

func under(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// canonical makes a request target comparable with a URL copied from a page. A browser escapes characters that the
// page's author did not, so canonical removes the escapes. Malformed escapes stay.
func canonical(target string) string {
	if !strings.Contains(target, "%") {
		return target
	}
	var out strings.Builder
	for i := 0; i < len(target); i++ {
		if target[i] == '%' && i+2 < len(target) {
			high, low := unhex(target[i+1]), unhex(target[i+2])
			if high >= 0 && low >= 0 {
				out.WriteByte(byte(high<<4 | low))
				i += 2
				continue
			}
		}
		out.WriteByte(target[i])
	}
	return out.String()
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
