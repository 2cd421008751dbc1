// Package whole writes files that are whole at any time.
package whole

import (
	"errors"
	"io"
	"os"
)

// Write replaces the file at path by what write writes. Another file is written beside it, and renamed. Only its owner can read
// it. After an error, the earlier file is still there.
func Write(path string, write func(io.Writer) error) (err error) {
	temporary := path + ".new"
	// An earlier one may have other permissions.
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
		}
	}()
	err = write(file)
	if err == nil {
		// Else a power cut could leave a name without its bytes.
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
