// SPDX-License-Identifier: MIT

// Which rows does controller-runtime's priority queue have? One thread,
// deadlines, memory, and a row of its own, priorities. Not the crowds: at a
// shutdown it drops what is pending, so that the end of such a row cannot be the
// same.
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
	printEach(time.Since(start), n)
	must(first == levels-1, "order by priority")
	q.ShutDown()
}

var controllerRuntime = join(queueRows(asQueue), delayRows(asDelaying), side{
	"priority": func() { priorities(100000) },
})
