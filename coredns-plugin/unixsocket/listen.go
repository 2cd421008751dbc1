// Package unixsocket opens Unix sockets in the state folder.
package unixsocket

import (
	"errors"
	"net"
	"os"
)

// Listen opens a socket at path with the permissions of mode. A socket of a process that was killed is replaced.
func Listen(path string, mode os.FileMode) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}
