// Command origins plays the wired Internet for the test bed. It serves any number of web sites, each host name on its
// own address, and is the authoritative DNS server for all of them. A proxy can only be judged by the traffic that
// reaches the origins. So the program logs every query, connection and request, and tests read the log.
//
//	origins -manifest site.json [-log origins.jsonl]
//
// It prints one line "ready" on standard output when every socket is open. It ends on SIGINT or SIGTERM.
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
	manifestPath := flag.String("manifest", "", "JSON file of what to serve: hosts, addresses, files, generated objects")
	logPath := flag.String("log", "", "file for the log: one JSON object for each query, connection and request")
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
		return errors.New("-manifest is missing: name the JSON file of what to serve")
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
