// Package meanwhile lets a plugin respond to a query while the true response to it is under way.
//
// The plugin puts an Asker into the query's context. The memory of names behind it tells the Asker when it has no response. It
// goes on waiting for the truth, unless the Asker's channel is closed first.
package meanwhile

import (
	"context"
	"errors"
)

// ErrAnswered is what the memory returns in place of a response, when the Asker's channel was closed first. The query for the
// truth goes on.
var ErrAnswered = errors.New("answered before the truth came")

// Asker is a query that may be answered before its truth is known.
type Asker interface {
	// Missed hears that no response is remembered. Its channel is closed when the query need not wait. Nil: it waits.
	Missed() <-chan struct{}
}

type key struct{}

// With returns a context that has the Asker.
func With(ctx context.Context, asker Asker) context.Context {
	return context.WithValue(ctx, key{}, asker)
}

// Missed tells the Asker of a context, if there is one, that no response is remembered. It returns the Asker's channel.
func Missed(ctx context.Context) <-chan struct{} {
	if asker, ok := ctx.Value(key{}).(Asker); ok {
		return asker.Missed()
	}
	return nil
}
