package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const coredns = "coredns" // built from this module

const (
	plainCoreDNS = "CoreDNS"
	withLonghaul = "CoreDNS + longhaul"
	unboundRPZ   = "unbound RPZ"

	reloadEvery = 500 * time.Millisecond
)

// contenders returns our server, the same one without the plugin, and the programs that operators use today for the
// same purpose. Only the recursor can keep the origin's addresses behind the proxy's. The others replace them.
func contenders() []*server {
	return []*server{
		{name: plainCoreDNS, program: coredns, configure: func(b *bed, dir string, port int) ([]string, error) {
			return corefile(b, dir, port, "")
		}},
		{name: withLonghaul, program: coredns, steers: true, configure: func(b *bed, dir string, port int) ([]string, error) {
			return corefile(b, dir, port, fmt.Sprintf("longhaul %s {\nproxy %s\nreload %s\n}\n", b.path("list"), proxyAddress, reloadEvery))
		}},
		{name: "pdns-recursor + Lua", program: "pdns_recursor", packages: "pdns-recursor", steers: true, configure: recursor},
		{name: unboundRPZ, program: "unbound", packages: "unbound", steers: true, configure: unbound},
		{name: "dnsmasq address=", program: "dnsmasq", packages: "dnsmasq-base", steers: true, configure: dnsmasq},
	}
}

// corefile writes a Corefile like that of `longhaul render`, without the plugins that take no part in a query.
func corefile(b *bed, dir string, port int, plugin string) ([]string, error) {
	metrics, err := freePort()
	if err != nil {
		return nil, err
	}
	return []string{"-conf", filepath.Join(dir, "Corefile")}, os.WriteFile(filepath.Join(dir, "Corefile"), fmt.Appendf(nil,
		`.:%d {
bind 127.0.0.1
errors
prometheus 127.0.0.1:%d
%scache {
success 100000
denial 100000
}
forward . 127.0.0.1:%d
}
`, port, metrics, plugin, b.upstream), 0o644)
}

// recursor prepends the proxy's address in a Lua hook that looks up names in the recursor's own set of domains.
func recursor(b *bed, dir string, port int) ([]string, error) {
	script := fmt.Sprintf(`
local steered = newDS()
for name in io.lines(%q) do steered:add(name) end

function postresolve(dq)
  if dq.qtype ~= pdns.A or not steered:check(dq.qname) then return false end
  local origin = dq:getRecords()
  if #origin == 0 then return false end
  dq:setRecords({})
  dq:addAnswer(pdns.A, %q, 60)
  local answer = dq:getRecords()
  for _, record in ipairs(origin) do table.insert(answer, record) end
  dq:setRecords(answer)
  return true
end
`, b.path("list"), proxyAddress)
	if err := os.WriteFile(filepath.Join(dir, "prepend.lua"), []byte(script), 0o644); err != nil {
		return nil, err
	}
	return []string{
		"--config-dir=" + dir, "--socket-dir=" + dir, "--local-address=127.0.0.1", fmt.Sprintf("--local-port=%d", port),
		fmt.Sprintf("--forward-zones-recurse=.=127.0.0.1:%d", b.upstream), "--dont-query=", "--lua-dns-script=" + filepath.Join(dir, "prepend.lua"),
		"--threads=1", "--pdns-distributes-queries=no", "--dnssec=off", "--daemon=no", "--write-pid=no", "--disable-syslog",
		"--setuid=", "--setgid=", "--quiet=yes", "--security-poll-suffix=", "--hint-file=no",
	}, nil
}

func unbound(b *bed, dir string, port int) ([]string, error) {
	zone := filepath.Join(dir, "zone")
	if err := writeLines(zone, b.listed, "%[1]s A "+proxyAddress+"\n*.%[1]s A "+proxyAddress+"\n",
		"$TTL 60", "$ORIGIN rpz.", "@ SOA localhost. nobody.invalid. 1 3600 1200 604800 60", "@ NS localhost."); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config")
	return []string{"-d", "-p", "-c", config}, os.WriteFile(config, fmt.Appendf(nil, `
server:
	directory: %q
	chroot: ""
	username: ""
	pidfile: ""
	use-syslog: no
	interface: 127.0.0.1@%d
	access-control: 127.0.0.0/8 allow
	do-not-query-localhost: no
	num-threads: 1
	msg-cache-size: 64m
	rrset-cache-size: 128m
	module-config: "respip iterator"
rpz:
	name: rpz.
	zonefile: %q
remote-control:
	control-enable: no
forward-zone:
	name: "."
	forward-addr: 127.0.0.1@%d
`, dir, port, zone, b.upstream), 0o644)
}

func dnsmasq(b *bed, dir string, port int) ([]string, error) {
	config := filepath.Join(dir, "config")
	return []string{"--keep-in-foreground", "--conf-file=" + config, "--user=", "--pid-file=", "--log-facility=-"},
		writeLines(config, b.listed, "address=/%s/"+proxyAddress+"\n", fmt.Sprintf(`no-resolv
no-hosts
bind-interfaces
listen-address=127.0.0.1
port=%d
server=127.0.0.1#%d
cache-size=10000
dns-forward-max=1000`, port, b.upstream))
}

// writeLines writes head, and then each name in the given format.
func writeLines(path string, names []string, format string, head ...string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(file, 1<<20)
	for _, line := range head {
		fmt.Fprintln(w, line)
	}
	for _, name := range names {
		fmt.Fprintf(w, format, name)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return file.Close()
}
