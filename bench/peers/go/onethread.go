// SPDX-License-Identifier: MIT

// What does a key cost when one goroutine uses the queue? The counterpart of
// bench/rows/one_thread.c.
package main

import (
	"strings"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	cycles    = 1000000
	smallFill = 100000
)

type queue = workqueue.TypedInterface[string]

func getAndDone(q queue) {
	key, shutdown := q.Get()
	must(!shutdown, "Get")
	q.Done(key)
}

// cycle: add, get and done, n different keys in turn.
func cycle(create func() queue, n int) {
	makeKeys(n)
	runCycles(create, n)
}

// longKeys: the same with keys of so many bytes, 1 k of them.
func longKeys(create func() queue, bytes int) {
	makeKeys(1000)
	for i := range keys {
		keys[i] = strings.Repeat("x", bytes-keyLen) + keys[i]
	}
	runCycles(create, len(keys))
}

func runCycles(create func() queue, n int) {
	total := scaled(cycles)
	q := create()
	start := begin()
	for i := range total {
		q.Add(keys[i%n])
		getAndDone(q)
	}
	printEach(time.Since(start), total)
	q.ShutDown()
}

// fillAndDrain: add n keys, then get and done of them all; repeated if n is
// small.
func fillAndDrain(create func() queue, n int) {
	total := scaled(max(n, smallFill))
	n = min(n, total)
	laps := total / n
	makeKeys(n)
	q := create()
	start := begin()
	for range laps {
		for _, key := range keys {
			q.Add(key)
		}
		for range n {
			getAndDone(q)
		}
	}
	printEach(time.Since(start), n*laps)
	q.ShutDown()
}

// duplicateAdd: add keys that are READY already, n of them, in random order.
// Reading the length at the end makes a queue that merges adds later do so
// within the measured time.
func duplicateAdd(create func() queue, n int) {
	total := scaled(cycles)
	n = min(n, total)
	makeKeys(n)
	q := create()
	for _, key := range keys {
		q.Add(key)
	}
	must(q.Len() == n, "Len")
	start := begin()
	for i := range total {
		q.Add(keys[i*7919%n])
	}
	pending := q.Len()
	printEach(time.Since(start), total)
	must(pending == n, "number of pending keys")
	q.ShutDown()
}

// batches: 32 adds, 32 gets, 32 dones, repeated.
func batches(create func() queue, n int) {
	makeKeys(n)
	laps := scaled(cycles) / batch
	places := n / batch
	var items [batch]string
	q := create()
	start := begin()
	for lap := range laps {
		at := lap % places * batch
		for k := range batch {
			q.Add(keys[at+k])
		}
		for k := range batch {
			key, shutdown := q.Get()
			must(!shutdown, "Get")
			items[k] = key
		}
		for k := range batch {
			q.Done(items[k])
		}
	}
	printEach(time.Since(start), laps*batch)
	q.ShutDown()
}

// growth: the longest single add while n keys are added.
func growth(create func() queue, n int) {
	n = scaled(n)
	q := create()
	var longest time.Duration
	begin()
	for i := range n {
		key := writeKey(i)
		start := time.Now()
		q.Add(key)
		longest = max(longest, time.Since(start))
	}
	printFigure("max_ns", float64(longest))
	q.ShutDown()
}

// manyQueues: n queues, each with one key that is added, handed out and done;
// then all are shut down.
func manyQueues(create func() queue, n int) {
	n = scaled(n)
	makeKeys(n)
	queues := make([]queue, n)
	start := begin()
	for i := range queues {
		queues[i] = create()
		queues[i].Add(keys[i])
	}
	for _, q := range queues {
		getAndDone(q)
	}
	for _, q := range queues {
		q.ShutDown()
	}
	printEach(time.Since(start), n)
}
