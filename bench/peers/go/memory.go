// SPDX-License-Identifier: MIT

// How many bytes does a key take, its own included? The counterpart of
// bench/rows/memory.c. The figures are the live heap after two collections,
// which is less than a running program ever has, and the growth of the process
// as the kernel counts it.
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

func alive() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func resident() float64 {
	var size, pages int
	text, err := os.ReadFile("/proc/self/statm")
	must(err == nil, "reading statm")
	_, err = fmt.Sscan(string(text), &size, &pages)
	must(err == nil, "reading statm")
	return float64(pages * os.Getpagesize())
}

// measure adds n keys and calls settle, which waits until the queue has them all.
func measure(n int, add func(key string), settle func()) {
	bytes, rss := alive(), resident()
	for i := range n {
		add(writeKey(i))
	}
	settle()
	grown := resident() - rss
	printFigure("bytes", (alive()-bytes)/float64(n))
	printFigure("rss_bytes", grown/float64(n))
}

func pending(create func() queue, n int) {
	n = scaled(n)
	q := create()
	measure(n, q.Add, func() { must(q.Len() == n, "number of pending keys") })
	q.ShutDown()
}

// waiting: a goroutine of the queue receives keys with a delay, and does not
// report when it has received the last.
func waiting(create func() delaying, n int) {
	q := create()
	measure(scaled(n), func(key string) { q.AddAfter(key, time.Hour) },
		func() { time.Sleep(100 * time.Millisecond) })
	q.ShutDown()
}

// queueMemory: n queues with one key each.
func queueMemory(create func() queue, n int) {
	queues := make([]queue, 0, n)
	measure(n, func(key string) {
		q := create()
		q.Add(key)
		queues = append(queues, q)
	}, func() {})
	for _, q := range queues {
		q.ShutDown()
	}
}
