// Command coredns is CoreDNS with the longhaul plugin and the stock plugins that go well with it.
package main

import (
	"github.com/coredns/coredns/coremain"

	_ "example.org/longhaul/coredns-plugin/slim"
)

func main() { coremain.Run() }
