// SPDX-License-Identifier: MIT

// Which rows does controller-runtime's priority queue have? Those that measure
// something of it: one thread, deadlines, memory, and the one row that is its
// own, priorities. Not the crowds: a shutdown makes it drop what is pending, so
// the end of such a row cannot be the same.
package main

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

const levels = 5

// priorityQueue has no name: then it keeps no metrics.
func priorityQueue() priorityqueue.PriorityQueue[string] {
	return priorityqueue.New[string]("")
}

func asQueue() queue       { return priorityQueue() }
func asDelaying() delaying { return priorityQueue() }

// priorities: fill with n keys of five priorities in turn, then drain.
func priorities(n int) {
	n = scaled(n)
	makeKeys(n)
	var values [levels]int
	for i := range values {
		values[i] = i
	}
	q := priorityQueue()
	first := 0

	start := begin()
	for i, key := range keys {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &values[i%levels]}, key)
	}
	for i := range n {
		key, _, shutdown := q.GetWithPriority()
		must(!shutdown, "GetWithPriority")
		if i == 0 {
			first = keyNumber(key)
		}
		q.Done(key)
	}
	sayEach(time.Since(start), n)
	must(first == levels-1, "order by priority")
	q.ShutDown()
}

var controllerRuntime = side{
	"priority":       func() { priorities(100000) },
	"cycle":          func() { cycle(asQueue, 1000) },
	"fill-1k":        func() { fillAndDrain(asQueue, 1000) },
	"fill-100k":      func() { fillAndDrain(asQueue, 100000) },
	"fill-1m":        func() { fillAndDrain(asQueue, 1000000) },
	"dup-1k":         func() { duplicateAdd(asQueue, 1000) },
	"dup-1m":         func() { duplicateAdd(asQueue, 1000000) },
	"after-100k":     func() { after(asDelaying, 100000) },
	"late":           func() { late(asDelaying, timers) },
	"wake":           func() { wake(asQueue, wakes) },
	"idle":           func() { idle(asDelaying, 1000) },
	"memory-pending": func() { pending(asQueue, 1000000) },
	"memory-waiting": func() { waiting(asDelaying, 1000000) },
}
