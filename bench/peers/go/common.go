// SPDX-License-Identifier: MIT

// Keys, random numbers and figures: the counterpart of bench/rows/common.c.
package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

const (
	keyLen      = 31
	batch       = 32
	poolThreads = 8
)

// keys are all different, and of the same length.
var keys []string

func scaled(n int) int {
	if quick && n > 1000 {
		return n / 100
	}
	return n
}

func must(ok bool, what string) {
	if !ok {
		fmt.Fprintf(os.Stderr, "bench: %s failed; no figure is valid\n", what)
		os.Exit(1)
	}
}

// writeKey allocates the key and nothing else, for the row that measures memory.
func writeKey(i int) string {
	text := [keyLen]byte([]byte("namespace-0000/pod-000000000000"))
	for n, at := i%1000, 13; n > 0; n, at = n/10, at-1 {
		text[at] = byte('0' + n%10)
	}
	for n, at := i, len(text)-1; n > 0; n, at = n/10, at-1 {
		text[at] = byte('0' + n%10)
	}
	return string(text[:])
}

func makeKeys(n int) {
	keys = make([]string, n)
	for i := range keys {
		keys[i] = writeKey(i)
	}
}

// keyNumber returns the number of a key.
func keyNumber(key string) int {
	n := 0
	for at := len(key) - 12; at < len(key); at++ {
		n = n*10 + int(key[at]-'0')
	}
	return n
}

// random returns the same numbers as on every side.
func random(state *uint64) uint64 {
	*state = *state*6364136223846793005 + 1442695040888963407
	return *state >> 32
}

// begin collects the garbage of the preparations and starts the clock.
func begin() time.Time {
	runtime.GC()
	return time.Now()
}

func printFigure(name string, value float64) {
	fmt.Printf("%s %.3f\n", name, value)
}

func printEach(took time.Duration, n int) {
	printFigure("ns", float64(took.Nanoseconds())/float64(n))
}

// printSpread prints p50, p99 and max of some times; sorts them.
func printSpread(times []time.Duration) {
	slices.Sort(times)
	n := len(times)
	printFigure("p50_ns", float64(times[n/2]))
	printFigure("p99_ns", float64(times[n*99/100]))
	printFigure("max_ns", float64(times[n-1]))
}
