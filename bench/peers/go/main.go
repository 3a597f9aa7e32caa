// SPDX-License-Identifier: MIT

// Which row, of which of Go's queues? The counterpart of bench/rows/main.c:
//
//	bench_go SIDE ROW [--quick]    print the figures of one row
//	bench_go --version             which Go, which modules
//
// It exits with 3 if the side has no such row. The rows are those of
// bench/rows, loop for loop: the same keys, operations and counts. Keys are
// strings made beforehand, so an add copies no bytes; the garbage collector and
// GOMAXPROCS are as Go sets them, and a collection comes right before each
// measurement, so that nobody pays for the making of the keys.
package main

import (
	"fmt"
	"os"
)

// quick shrinks the counts to prove that the program works.
var quick bool

// side is a queue's rows, by name.
type side map[string]func()

var sides = map[string]side{
	"client-go":          clientGo,
	"controller-runtime": controllerRuntime,
}

func main() {
	args := os.Args[1:]
	if len(args) == 3 && args[2] == "--quick" {
		quick = true
		args = args[:2]
	}
	switch {
	case len(args) == 1 && args[0] == "--version":
		sayVersions()
	case len(args) == 2 && sides[args[0]] != nil:
		run := sides[args[0]][args[1]]
		if run == nil {
			os.Exit(3)
		}
		run()
	default:
		fmt.Fprintln(os.Stderr, "usage: bench_go SIDE ROW [--quick]")
		os.Exit(2)
	}
}
