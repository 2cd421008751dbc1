// Package names holds the sets of domain names that Longhaul steers or leaves alone: how an entry is written, how a list
// file is read, and a set that finds one of a million names in a fraction of a microsecond.
//
// It knows nothing of DNS messages or of CoreDNS. A lookup is two steps, so that several sets share the first one:
//
//	var key names.Key
//	key.Read(qname)   // once a query: lower case, cut into labels
//	set.Has(&key)     // any number of sets
//
// Sets compare names exactly. A fingerprint would be smaller still, but a false positive would send the visitors of a
// site nobody listed through the proxy.
package names
