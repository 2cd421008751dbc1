package longhaul

// Ready implements the ready.Readiness interface. Lists are read before the server starts, so what is left to wait for is
// the first look at the proxy's listeners: before it, names would pass unsteered.
func (l *Longhaul) Ready() bool { return l.proxy.state.Load() != nil }
