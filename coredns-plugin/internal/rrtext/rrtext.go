// Package rrtext writes records as text and reads them from it, for tests.
package rrtext

import (
	"strings"

	"github.com/miekg/dns"
)

// Parse reads records, one a line. It panics on a malformed one: the text is part of a test.
func Parse(lines string) []dns.RR {
	var rrs []dns.RR
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		rr, err := dns.NewRR(line)
		if err != nil {
			panic(err)
		}
		rrs = append(rrs, rr)
	}
	return rrs
}

// Words writes records with single spaces, one a line.
func Words(rrs []dns.RR) string {
	lines := make([]string, len(rrs))
	for i, rr := range rrs {
		lines[i] = strings.Join(strings.Fields(rr.String()), " ")
	}
	return strings.Join(lines, "\n")
}

// Tidy writes lines as Words does.
func Tidy(lines string) string { return Words(Parse(lines)) }
