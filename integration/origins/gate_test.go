package main

import (
	"context"
	"testing"
)

func TestAGateLetsNobodyPassBeforeItWasOpenedAsOftenAsTheyNeedAndThenEverybody(t *testing.T) {
	var keeper gateKeeper
	gone, leave := context.WithCancel(t.Context())
	leave()
	if keeper.at("a").pass(gone, 1) {
		t.Error("passed a closed gate")
	}
	waiting := make(chan bool)
	go func() { waiting <- keeper.at("a").pass(t.Context(), 2) }()
	keeper.at("b").open()
	keeper.at("a").open()
	if keeper.at("a").pass(gone, 2) {
		t.Error("passed a gate that was opened once")
	}
	keeper.at("a").open()
	if !<-waiting || !keeper.at("a").pass(gone, 2) {
		t.Error("did not pass an open gate")
	}
}
