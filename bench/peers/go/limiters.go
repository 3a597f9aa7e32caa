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
	sayEach(time.Since(start), n)
	must(sum == time.Duration(n)*5*time.Millisecond, "first delay of each key")
}

func finish(q limited) {
	key, shutdown := q.Get()
	must(!shutdown, "Get")
	q.Forget(key)
	q.Done(key)
}

// allLimited: AddRateLimited of n keys, then Get, Forget and Done of them all.
func allLimited(create func() limited, n int) {
	n = scaled(n)
	makeKeys(n)
	q := create()
	start := begin()
	for _, key := range keys {
		q.AddRateLimited(key)
	}
	for range n {
		finish(q)
	}
	sayEach(time.Since(start), n)
	q.ShutDown()
}

// eachLimited: the same, one key after the other.
func eachLimited(create func() limited, n int) {
	n = scaled(n)
	makeKeys(n)
	q := create()
	start := begin()
	for _, key := range keys {
		q.AddRateLimited(key)
		finish(q)
	}
	sayEach(time.Since(start), n)
	q.ShutDown()
}
