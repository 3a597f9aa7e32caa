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

// atOnce delays every key by a nanosecond.
func atOnce() limited {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](1, 1))
}

func controller() limited {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](
			5*time.Millisecond, 1000*time.Second))
}

var clientGo = join(queueRows(plain), delayRows(delayed), side{
	"metrics":       func() { cycle(metered, 1000) },
	"next":          func() { fillAndDrain(plain, 100000) },
	"batch":         func() { batches(plain, 1000) },
	"1x1":           func() { crowd(plain, 1, 1) },
	"2x2":           func() { crowd(plain, 2, 2) },
	"4x4":           func() { crowd(plain, 4, 4) },
	"8x8":           func() { crowd(plain, 8, 8) },
	"1x2":           func() { crowd(plain, 1, 2) },
	"1x8":           func() { crowd(plain, 1, 8) },
	"8x1":           func() { crowd(plain, 8, 1) },
	"batch-4x4":     func() { crowd(plain, 4, 4) },
	"hot-key":       func() { hotKey(plain, 8) },
	"fair":          func() { fair(plain, 4) },
	"ping-pong":     func() { pingPong(plain, trips) },
	"pool":          func() { pool(controller, crowdKeys) },
	"pool-slow":     func() { slowPool(controller, 4000) },
	"fill-10m":      func() { fillAndDrain(plain, 10000000) },
	"growth":        func() { growth(plain, 10000000) },
	"long-200":      func() { longKeys(plain, 200) },
	"long-4k":       func() { longKeys(plain, 4096) },
	"queues":        func() { manyQueues(plain, 10000) },
	"trickle-1k":    func() { trickle(plain, 1000) },
	"trickle-10k":   func() { trickle(plain, 10000) },
	"memory-10m":    func() { pending(plain, 10000000) },
	"memory-queues": func() { queueMemory(plain, 10000) },
	"after-1m":      func() { after(delayed, 1000000) },
	"limiter":       func() { whenAndForget(limitedKeys) },
	"limited":       func() { allLimited(atOnce, limitedKeys) },
	"limited-each":  func() { eachLimited(atOnce, limitedKeys) },
})
