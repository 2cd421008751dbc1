package remember

import (
	"context"
	"fmt"
	"time"

	"example.org/longhaul/coredns-plugin/internal/explain"
	"example.org/longhaul/coredns-plugin/remember/store"

	"github.com/miekg/dns"
)

// explain responds as to a client, and says where the response is from. The memory stays as it is, unless it has none. A query
// that desires no recursion is about the memory alone.
func (h *Remember) explain(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, key store.Key) (int, error) {
	known, is := h.recall(key, h.memory.Peek)
	source := "remembered: a query brought it"
	switch {
	case known == nil && !r.RecursionDesired:
		// Nothing crosses the link for this question.
		m := new(dns.Msg).SetReply(r)
		explain.WithSource(m, "unknown: no response is remembered, so the next query crosses the link")
		return dns.RcodeSuccess, w.WriteMsg(m)
	case known == nil:
		truth, rcode, err := h.ask(ctx, w, r, key)
		if truth == nil {
			return rcode, err
		}
		known, source = truth, "asked: it was not remembered, and this query brought it over the link"
	case is.pushed:
		source = fmt.Sprintf("pushed: the ground sent it before it was asked, %s", ago(is.age))
	default:
		source = fmt.Sprintf("%s, %s", source, ago(is.age))
	}
	if is.stale {
		source += ". It is stale, and served while it is queried again"
	}
	m := reply(r, known)
	explain.WithSource(m, source)
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func ago(age time.Duration) string { return age.Round(time.Second).String() + " ago" }
