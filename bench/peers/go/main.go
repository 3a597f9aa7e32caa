// SPDX-License-Identifier: MIT

// Which row of which Go queue does this program run? The counterpart of
// bench/rows/main.c:
//
//	bench_go SIDE ROW [--quick]    print the figures of one row
//	bench_go --version             print the versions of Go and the modules
//
// It exits with 3 if the side has no such row. The rows are those of
// bench/rows, loop for loop: the same keys, operations and counts. Keys are
// strings made beforehand, so that an add copies no bytes. The garbage collector
// and GOMAXPROCS have their default settings; a collection runs right before
// each measurement, so that no row pays for making the keys.
package main

import (
	"fmt"
	"maps"
	"os"
)

// quick reduces the counts, to show that the program works.
var quick bool

// side is a queue's rows, by name.
type side map[string]func()

// queueRows are the rows that every queue has.
func queueRows(create func() queue) side {
	return side{
		"cycle":          func() { cycle(create, 1000) },
		"cycle-beside":   func() { cycle(create, 1000) }, // it has threads
		"fill-1k":        func() { fillAndDrain(create, 1000) },
		"fill-100k":      func() { fillAndDrain(create, 100000) },
		"fill-1m":        func() { fillAndDrain(create, 1000000) },
		"dup-1k":         func() { duplicateAdd(create, 1000) },
		"dup-1m":         func() { duplicateAdd(create, 1000000) },
		"wake":           func() { wake(create, wakes) },
		"memory-pending": func() { pending(create, 1000000) },
	}
}

// delayRows are the rows that every queue with delays has.
func delayRows(create func() delaying) side {
	return side{
		"after-100k":     func() { after(create, 100000) },
		"late":           func() { late(create, timers) },
		"idle":           func() { idle(create, 1000) },
		"memory-waiting": func() { waiting(create, 1000000) },
	}
}

func join(parts ...side) side {
	all := side{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

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
		printVersions()
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
