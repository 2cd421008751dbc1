// Command origins plays the wired Internet for the test bed: any number of web sites, each host name on an address of
// its own, and the authoritative DNS server for all of them. It exists because a proxy can only be judged by what
// reaches the origin: every query, connection and request is written to a log that tests read.
//
//	origins -manifest site.json [-log origins.jsonl]
//
// It prints one line "ready" on standard output when every socket is open, and ends on SIGINT or SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	manifestPath := flag.String("manifest", "", "what to serve: hosts, addresses, files, generated objects (JSON)")
	logPath := flag.String("log", "", "where to write one JSON object for each query, connection and request")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *manifestPath, *logPath); err != nil {
		fmt.Fprintln(os.Stderr, "origins:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, manifestPath, logPath string) error {
	if manifestPath == "" {
		return errors.New("-manifest is needed: the JSON file that says what to serve")
	}
	site, err := LoadSite(manifestPath)
	if err != nil {
		return err
	}
	log, err := OpenLog(logPath)
	if err != nil {
		return err
	}
	defer log.Close()

	servers, err := Start(site, log)
	if err != nil {
		return err
	}
	defer servers.Stop()
	fmt.Println("ready")
	<-ctx.Done()
	return nil
}
