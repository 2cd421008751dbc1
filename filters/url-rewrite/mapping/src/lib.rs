//! What a URL becomes on the proxy and back: pure, no I/O, no HTML.
