package steer

// Verdict is the outcome of one response. Each Left value is a reason to leave it as it was.
type Verdict uint8

// The outcomes. The handler gives the first five reasons, which need the client or the state of the proxy.
const (
	Steered    Verdict = iota + 1 // the proxy's addresses stand first, or alone
	Suppressed                    // responded "no data", so that the client uses a record that is steered
	Stripped                      // an HTTPS record lost what leads past the proxy
	Kept                          // nothing in it leads past the proxy

	LeftClient      // the query comes from the proxy itself, or from a client in bypass or in the share of compare
	LeftExcept      // listed, but excepted
	LeftPaused      // the switch is off
	LeftUnhealthy   // no proxy listener responds
	LeftIntercepted // the proxy intercepts the clients' connections at the true addresses
	LeftError       // the truth is an error (NXDOMAIN, SERVFAIL, ...) or no response came
	LeftEmpty       // the truth is that there is no such record
	LeftTruncated   // the client will repeat the query over TCP
	LeftDNSSEC      // the client would see that a signed response was changed
	LeftPrivate     // the name lives on a private network, or its response leads to the proxy already
	LeftMalformed   // the response does not read as one to the question
	LeftUnread      // the certificates are not known that tell whether the name may share the proxy's address
	LeftCovered     // a certificate covers names of two servers, and browsers would send the requests of both to one
	LeftCrowded     // no address of the proxy is free for one more server
	Verdicts        // their number
)

// String is the verdict's word in metrics and logs.
func (v Verdict) String() string {
	return [Verdicts]string{
		Steered: "steered", Suppressed: "suppressed", Stripped: "stripped", Kept: "kept",
		LeftClient: "client", LeftExcept: "except", LeftPaused: "paused", LeftUnhealthy: "unhealthy", LeftError: "error",
		LeftEmpty: "empty", LeftTruncated: "truncated", LeftDNSSEC: "dnssec", LeftPrivate: "private", LeftMalformed: "malformed",
		LeftIntercepted: "intercepted", LeftUnread: "certificate_unread", LeftCovered: "certificate_shared", LeftCrowded: "no_address",
	}[v]
}
