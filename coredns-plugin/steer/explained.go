package steer

import "github.com/miekg/dns"

// Explained returns res with the verdict as an extended error (RFC 8914): its word, a colon and its meaning. A steered
// response is a forged answer by the terms of that RFC.
func Explained(res *dns.Msg, verdict Verdict) *dns.Msg {
	code := dns.ExtendedErrorCodeOther
	if verdict == Steered {
		code = dns.ExtendedErrorCodeForgedAnswer
	}
	return ExplainedAs(res, code, verdict.String()+": "+verdict.Meaning())
}

// ExplainedAs returns res with a text as an extended error.
func ExplainedAs(res *dns.Msg, code uint16, text string) *dns.Msg {
	return withOption(res, &dns.EDNS0_EDE{InfoCode: code, ExtraText: text})
}
