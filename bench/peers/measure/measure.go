// SPDX-License-Identifier: MIT

// Package measure is what the programs that measure a peer have in common: their
// arguments, and what they print (bench/stores/peer.c).
package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Must ends the program if there is an error.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+":", err)
		os.Exit(1)
	}
}

// A Task is what the command line asks for.
type Task struct {
	Mode    string
	Threads int
	Span    time.Duration
	Where   string // a file or a socket
}

// Read the arguments MODE THREADS MILLISECONDS WHERE.
func Read() Task {
	if len(os.Args) != 5 {
		Must(fmt.Errorf("usage: MODE THREADS MILLISECONDS WHERE"))
	}
	threads, err := strconv.Atoi(os.Args[2])
	Must(err)
	span, err := strconv.Atoi(os.Args[3])
	Must(err)
	return Task{os.Args[1], threads, time.Duration(span) * time.Millisecond,
		os.Args[4]}
}

// Key returns the n-th key of a thread.
func Key(number, n int) string {
	return fmt.Sprintf("namespace-%04d/pod-%012d", n%1000,
		number*1000000000+n)
}

// Each runs f in so many goroutines, and returns the sum of what they return.
func Each(threads int, f func(number int) int) int64 {
	var all sync.WaitGroup
	var sum atomic.Int64
	for i := 0; i < threads; i++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			sum.Add(int64(f(number)))
		}(i)
	}
	all.Wait()
	return sum.Load()
}

func cpu() time.Duration {
	var r syscall.Rusage
	Must(syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// A Watch measures wall and processor time.
type Watch struct {
	begin time.Time
	cpu   time.Duration
}

// Start a watch.
func Start() Watch {
	return Watch{time.Now(), cpu()}
}

// Print the number of cycles, and the seconds that they took.
func (w Watch) Print(cycles int64) {
	fmt.Println(cycles, time.Since(w.begin).Seconds(),
		(cpu() - w.cpu).Seconds())
}
