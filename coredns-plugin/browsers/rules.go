// Package browsers decides which lookups are a browser's first ones for a name, and gives them an address before the truth is
// known. A browser sends an HTTPS query beside the A query for a name. Programs that use an address for something else than
// the web send none. The package knows no network and no clock.
//
//	rules.go    the lookups that wait for the truth
//	outcome.go  the outcomes, with a reason each
//	table.go    the state: what is asked for now, and what has an address
//	pairs.go    which A query and which HTTPS query belong together
//	book.go     one address for each name
package browsers

import (
	"net/netip"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Lookup is what the rules see of a query.
type Lookup struct {
	Name      string // as in the query
	Bypassed  bool   // the client always gets the truth
	Excepted  bool   // the name is one of `except`
	Down      bool   // the proxy does not take connections
	Validates bool   // the client may check signatures, or wants no recursion
}

// rules are the reasons to wait for the truth. The first one that holds is the outcome.
var rules = []struct {
	outcome Outcome
	holds   func(l Lookup, name string, labels []string) bool
}{
	{Client, func(l Lookup, _ string, _ []string) bool { return l.Bypassed }},
	{Except, func(l Lookup, _ string, _ []string) bool { return l.Excepted }},
	{Down, func(l Lookup, _ string, _ []string) bool { return l.Down }},
	{Validates, func(l Lookup, _ string, _ []string) bool { return l.Validates }},
	{SingleLabel, func(_ Lookup, _ string, labels []string) bool { return len(labels) < 2 }},
	{NoHost, func(_ Lookup, name string, _ []string) bool { return strings.TrimLeft(name, hostBytes) != "" }},
	{Underscore, func(_ Lookup, _ string, labels []string) bool { return hasUnderscore(labels) }},
	{LocalLabel, func(_ Lookup, _ string, labels []string) bool { return localLabels[labels[0]] }},
	{SpecialUse, func(_ Lookup, _ string, labels []string) bool { return specialUse[labels[len(labels)-1]] }},
	{PrivateSuffix, func(_ Lookup, name string, _ []string) bool { return isBelow(name, privateSuffixes) }},
	{NoSuffix, func(_ Lookup, name string, _ []string) bool { return !hasPublicSuffix(name) }},
}

// hostBytes are the characters of names of hosts, and the underscore, which some have.
const hostBytes = "abcdefghijklmnopqrstuvwxyz0123456789-_."

// localLabels are first labels that programs put in front of the network's own domain, to find a server of the network. The
// response "no such name" tells them to go on.
var localLabels = map[string]bool{
	"wpad":   true, // proxies (draft-ietf-wrec-wpad)
	"isatap": true, // tunnels (RFC 5214)
}

// specialUse are the top-level domains of the registry of special-use names (RFC 6761), and those that networks use for
// themselves. Most are no public suffix either; `arpa` is one, with the reverses of addresses below it.
var specialUse = map[string]bool{
	"alt": true, "arpa": true, "example": true, "invalid": true, "local": true, "localhost": true, "onion": true, "test": true,
	"corp": true, "home": true, "internal": true, "intranet": true, "lan": true, "localdomain": true, "mail": true, "private": true,
}

// privateSuffixes are public names that stand for addresses of private networks, mostly with the address in the name. Their
// connections do not cross the link.
var privateSuffixes = []string{"plex.direct", "ui.direct", "nip.io", "sslip.io", "lvh.me", "localtest.me", "lan.direct"}

// Judge returns why a lookup waits for the truth, or Instant.
func (l Lookup) Judge() Outcome {
	name := strings.ToLower(strings.TrimSuffix(l.Name, "."))
	labels := strings.Split(name, ".")
	for _, rule := range rules {
		if rule.holds(l, name, labels) {
			return rule.outcome
		}
	}
	return Instant
}

func hasUnderscore(labels []string) bool {
	for _, label := range labels {
		if strings.HasPrefix(label, "_") {
			return true
		}
	}
	return false
}

func isBelow(name string, suffixes []string) bool {
	for _, suffix := range suffixes {
		if above, ok := strings.CutSuffix(name, suffix); ok && (above == "" || strings.HasSuffix(above, ".")) {
			return true
		}
	}
	return false
}

// hasPublicSuffix returns true if the name ends in a suffix of the public suffix list. For an ending that is not in the list,
// package publicsuffix returns the last label, as one that nobody manages. It takes an address for its own suffix.
func hasPublicSuffix(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return false
	}
	suffix, icann := publicsuffix.PublicSuffix(name)
	return icann || strings.Contains(suffix, ".")
}
