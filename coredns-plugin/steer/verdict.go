package steer

// Verdict is the outcome of one response. Each Left value is a reason to leave it as it was.
type Verdict uint8

// The outcomes. The handler gives the first five reasons, which need the client or the state of the proxy.
const (
	Steered Verdict = iota + 1
	Suppressed
	Stripped
	Kept

	LeftClient
	LeftExcept
	LeftPaused
	LeftUnhealthy
	LeftIntercepted
	LeftError
	LeftEmpty
	LeftTruncated
	LeftDNSSEC
	LeftPrivate
	LeftMalformed
	LeftUnread
	LeftCovered
	LeftCrowded
	Verdicts // their number
)

// verdicts has the word of each outcome in metrics and logs, and its meaning for a person.
var verdicts = [Verdicts]struct{ word, meaning string }{
	Steered:    {"steered", "the proxy's addresses stand first, or alone"},
	Suppressed: {"suppressed", "the response has no data, so that clients use a record that is steered"},
	Stripped:   {"stripped", "the HTTPS record lost what leads past the proxy"},
	Kept:       {"kept", "nothing in the response leads past the proxy"},

	LeftClient:      {"client", "the client is the proxy itself, or in `bypass` or in the share of `compare`"},
	LeftExcept:      {"except", "the name is listed, and excepted"},
	LeftPaused:      {"paused", "steering is paused"},
	LeftUnhealthy:   {"unhealthy", "no listener of the proxy responds"},
	LeftIntercepted: {"intercepted", "the proxy intercepts connections at the true addresses"},
	LeftError:       {"error", "the upstream response is an error, or none came"},
	LeftEmpty:       {"empty", "there is no such record"},
	LeftTruncated:   {"truncated", "the response is truncated, so the client repeats the query over TCP"},
	LeftDNSSEC:      {"dnssec", "the client would see that a signed response was changed"},
	LeftPrivate:     {"private", "the name is on a private network, or leads to the proxy already"},
	LeftMalformed:   {"malformed", "the upstream response does not fit the question"},
	LeftUnread:      {"certificate_unread", "the certificates are not read yet that tell whether the name may share an address of the proxy"},
	LeftCovered:     {"certificate_shared", "a certificate covers names of two servers, and browsers would send the requests of both to one"},
	LeftCrowded:     {"no_address", "the proxy has no free address for one more server"},
}

// String is the verdict's word in metrics and logs.
func (v Verdict) String() string { return verdicts[v].word }

// Meaning says the verdict to a person.
func (v Verdict) Meaning() string { return verdicts[v].meaning }
