// SPDX-License-Identifier: MIT

// What does a failure cost? The counterpart of bench/rows/limiters.c.
package main

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

const limitedKeys = 100000

type limited = workqueue.TypedRateLimitingInterface[string]

// whenAndForget: a limiter alone, When of n keys, then Forget of them all.
func whenAndForget(n int) {
	n = scaled(n)
	makeKeys(n)
	l := workqueue.NewTypedItemExponentialFailureRateLimiter[string](
		5*time.Millisecond, 1000*time.Second)
	var sum time.Duration

	start := begin()
	for _, key := range keys {
		sum += l.When(key)
	}
	for _, key := range keys {
		l.Forget(key)
	}
	printEach(time.Since(start), n)
	must(sum == time.Duration(n)*5*time.Millisecond, "first delay of each key")
}

func finish(q limited) {
	key, shutdown := q.Get()
	must(!shutdown, "Get")
	q.Forget(key)
	q.Done(key)
}

// timeLimited prints how long `work` takes on a new queue, for each of n keys.
func timeLimited(create func() limited, n int, work func(q limited)) {
	n = scaled(n)
	makeKeys(n)
	q := create()
	start := begin()
	work(q)
	printEach(time.Since(start), n)
	q.ShutDown()
}

// allLimited: AddRateLimited of n keys, then Get, Forget and Done of them all.
func allLimited(create func() limited, n int) {
	timeLimited(create, n, func(q limited) {
		for _, key := range keys {
			q.AddRateLimited(key)
		}
		for range keys {
			finish(q)
		}
	})
}

// eachLimited: the same, one key after the other.
func eachLimited(create func() limited, n int) {
	timeLimited(create, n, func(q limited) {
		for _, key := range keys {
			q.AddRateLimited(key)
			finish(q)
		}
	})
}
