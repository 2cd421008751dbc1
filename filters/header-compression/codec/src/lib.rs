//! Header lists to one compact field and back, with references to what the peer has acknowledged: pure, no I/O.
