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
	"metrics":      func() { cycle(metered, 1000) },
	"next":         func() { fillAndDrain(plain, 100000) },
	"batch":        func() { batches(plain, 1000) },
	"1x1":          func() { crowd(plain, 1) },
	"2x2":          func() { crowd(plain, 2) },
	"4x4":          func() { crowd(plain, 4) },
	"8x8":          func() { crowd(plain, 8) },
	"fair":         func() { fair(plain, 4) },
	"ping-pong":    func() { pingPong(plain, trips) },
	"pool":         func() { pool(controller, crowdKeys) },
	"after-1m":     func() { after(delayed, 1000000) },
	"limiter":      func() { whenAndForget(limitedKeys) },
	"limited":      func() { allLimited(atOnce, limitedKeys) },
	"limited-each": func() { eachLimited(atOnce, limitedKeys) },
})
