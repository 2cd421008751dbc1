// Command sshd is an ssh server for tests. It lets anybody in, runs no program, and its files do not exist.
//
//	sshd ADDRESS:PORT
//
// `ssh HOST download N` sends N bytes, and `ssh HOST count` says how many bytes came before the end of the input. The
// sftp subsystem has a file /N of N bytes for each number N. Byte i of a download or a file is i modulo 251.
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

const period = 251

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: sshd ADDRESS:PORT")
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		log.Fatal(err)
	}
	config := &ssh.ServerConfig{NoClientAuth: true, ServerVersion: "SSH-2.0-longhaul-test"}
	config.AddHostKey(signer)
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(conn, config)
	}
}

func serve(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for fresh := range channels {
		channel, asked, err := fresh.Accept()
		if err != nil {
			return
		}
		go session(channel, asked)
	}
}

func session(channel ssh.Channel, asked <-chan *ssh.Request) {
	defer channel.Close()
	for request := range asked {
		var what struct{ Text string }
		known := (request.Type == "exec" || request.Type == "subsystem") && ssh.Unmarshal(request.Payload, &what) == nil
		if request.WantReply {
			_ = request.Reply(known, nil)
		}
		if !known {
			continue
		}
		go ssh.DiscardRequests(asked)
		status := uint32(0)
		if err := run(channel, request.Type, what.Text); err != nil {
			status = 1
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		return
	}
}

func run(channel ssh.Channel, kind, text string) error {
	words := strings.Fields(text)
	switch {
	case kind == "subsystem" && text == "sftp":
		return serveFiles(channel)
	case kind == "exec" && len(words) == 2 && words[0] == "download":
		size, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return err
		}
		_, err = io.Copy(channel, io.NewSectionReader(pattern{}, 0, size))
		return err
	case kind == "exec" && text == "count":
		read, err := io.Copy(io.Discard, channel)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(channel, read)
		return err
	}
	return fmt.Errorf("unknown command %q", text)
}

// pattern is an endless file.
type pattern struct{}

func (pattern) ReadAt(into []byte, offset int64) (int, error) {
	for i := range into {
		into[i] = byte((offset + int64(i)) % period)
	}
	return len(into), nil
}
