// SPDX-License-Identifier: MIT

// Which rows does client-go's workqueue have? All of them but priorities.
package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

func plain() queue {
	return workqueue.NewTyped[string]()
}

func metered() queue {
	return workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{
		Name:            "bench",
		MetricsProvider: provider{prometheus.NewRegistry()},
	})
}

func delayed() delaying {
	return workqueue.NewTypedDelayingQueue[string]()
}

// atOnce lets every key wait for a nanosecond.
func atOnce() limited {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](1, 1))
}

func controller() limited {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](
			5*time.Millisecond, 1000*time.Second))
}

var clientGo = side{
	"cycle":          func() { cycle(plain, 1000) },
	"metrics":        func() { cycle(metered, 1000) },
	"fill-1k":        func() { fillAndDrain(plain, 1000) },
	"fill-100k":      func() { fillAndDrain(plain, 100000) },
	"fill-1m":        func() { fillAndDrain(plain, 1000000) },
	"dup-1k":         func() { duplicateAdd(plain, 1000) },
	"dup-1m":         func() { duplicateAdd(plain, 1000000) },
	"next":           func() { fillAndDrain(plain, 100000) },
	"batch":          func() { batches(plain, 1000) },
	"1x1":            func() { crowd(plain, 1) },
	"2x2":            func() { crowd(plain, 2) },
	"4x4":            func() { crowd(plain, 4) },
	"8x8":            func() { crowd(plain, 8) },
	"fair":           func() { fair(plain, 4) },
	"ping-pong":      func() { pingPong(plain, trips) },
	"pool":           func() { pool(controller, crowdKeys) },
	"after-100k":     func() { after(delayed, 100000) },
	"after-1m":       func() { after(delayed, 1000000) },
	"late":           func() { late(delayed, timers) },
	"wake":           func() { wake(plain, wakes) },
	"idle":           func() { idle(delayed, 1000) },
	"limiter":        func() { whenAndForget(limitedKeys) },
	"limited":        func() { allLimited(atOnce, limitedKeys) },
	"limited-each":   func() { eachLimited(atOnce, limitedKeys) },
	"memory-pending": func() { pending(plain, 1000000) },
	"memory-waiting": func() { waiting(delayed, 1000000) },
}
