// SPDX-License-Identifier: MIT

// What does a key cost when many goroutines use the queue? The counterpart of
// bench/rows/crowds.c. The time is measured from before the first goroutine
// starts until the last one has ended after the shutdown.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	crowdKeys = 1000000
	trips     = 100000
)

// consumers are goroutines that get keys until the queue is shut down.
type consumers struct {
	all   sync.WaitGroup
	count atomic.Int64
}

// start starts n of them. Each calls work, unless it is nil, between the get and
// the done of a key.
func (c *consumers) start(q queue, n int, work func(key string)) {
	for range n {
		c.all.Go(func() {
			mine := 0
			for {
				key, shutdown := q.Get()
				if shutdown {
					break
				}
				if work != nil {
					work(key)
				}
				q.Done(key)
				mine++
			}
			c.count.Add(int64(mine))
		})
	}
}

// wait waits until all have ended, and returns how many keys they got.
func (c *consumers) wait() int {
	c.all.Wait()
	return int(c.count.Load())
}

// runCrowd runs producers and takers, every key different. It calls added before
// the add of a key, and got after its get.
func runCrowd(q queue, n, takers int, added func(key int), got func(key string)) {
	each := len(keys) / n / batch * batch
	var producers sync.WaitGroup
	var consumers consumers

	start := begin()
	consumers.start(q, takers, got)
	for p := range n {
		producers.Go(func() {
			for i := p * each; i < (p+1)*each; i++ {
				if added != nil {
					added(i)
				}
				q.Add(keys[i])
			}
		})
	}
	producers.Wait()
	q.ShutDown()
	count := consumers.wait()
	took := time.Since(start)
	must(count == each*n, "number of keys handed out")
	printEach(took, each*n)
}

func crowd(create func() queue, n, takers int) {
	makeKeys(scaled(crowdKeys))
	runCrowd(create(), n, takers, nil, nil)
}

// hotKey: n producers add one key again and again, while a consumer works on it.
func hotKey(create func() queue, n int) {
	each := scaled(crowdKeys) / n
	makeKeys(1)
	q := create()
	var producers sync.WaitGroup
	var consumer consumers

	consumer.start(q, 1, nil)
	start := begin()
	for range n {
		producers.Go(func() {
			for range each {
				q.Add(keys[0])
			}
		})
	}
	producers.Wait()
	took := time.Since(start)
	q.ShutDown()
	runs := consumer.wait()
	must(runs >= 1 && runs <= each*n, "number of runs")
	printEach(took, each*n)
}

// fair: how long does a key wait between its add and its get, in such a crowd?
func fair(create func() queue, n int) {
	makeKeys(scaled(crowdKeys))
	adds := make([]time.Duration, len(keys))
	waits := make([]time.Duration, len(keys))
	epoch := time.Now()
	runCrowd(create(), n, n,
		func(i int) { adds[i] = time.Since(epoch) },
		func(key string) {
			i := keyNumber(key)
			waits[i] = time.Since(epoch) - adds[i]
		})
	printSpread(waits)
}

// pingPong: one key there and back, between two goroutines and two queues.
func pingPong(create func() queue, n int) {
	n = scaled(n)
	makeKeys(1)
	there, back := create(), create()
	var partner sync.WaitGroup

	start := begin()
	partner.Go(func() {
		for {
			key, shutdown := there.Get()
			if shutdown {
				return
			}
			there.Done(key)
			back.Add(key)
		}
	})
	for range n {
		there.Add(keys[0])
		getAndDone(back)
	}
	there.ShutDown()
	partner.Wait()
	printEach(time.Since(start), n)
	back.ShutDown()
}

// pool: the usual loop of a controller, in eight goroutines whose handler does
// nothing and never fails, and one producer.
func pool(create func() workqueue.TypedRateLimitingInterface[string], n int) {
	makeKeys(scaled(n))
	q := create()
	var workers consumers

	start := begin()
	workers.start(q, poolThreads, q.Forget)
	for _, key := range keys {
		q.Add(key)
	}
	q.ShutDown()
	count := workers.wait()
	took := time.Since(start)
	must(count == len(keys), "number of keys worked on")
	printEach(took, len(keys))
}

// slowPool: handlers that take 1 ms: how long is a worker free while keys are
// READY? For the first key of each worker, from the first add, when all of them
// wait in Get.
func slowPool(create func() workqueue.TypedRateLimitingInterface[string], n int) {
	makeKeys(n + poolThreads)
	q := create()
	gaps := make([]time.Duration, n)
	var next atomic.Int64
	var present, workers sync.WaitGroup
	var start time.Time

	present.Add(poolThreads)
	for range poolThreads {
		workers.Go(func() {
			key, _ := q.Get()
			present.Done()
			present.Wait() // until every worker has a key
			q.Done(key)
			var free time.Time
			for {
				key, shutdown := q.Get()
				if shutdown {
					return
				}
				if free.IsZero() {
					free = start
				}
				gaps[next.Add(1)-1] = time.Since(free)
				time.Sleep(time.Millisecond)
				free = time.Now()
				q.Forget(key)
				q.Done(key)
			}
		})
	}
	for _, key := range keys[n:] {
		q.Add(key)
	}
	present.Wait()
	runtime.GC()
	time.Sleep(5 * time.Millisecond)

	start = time.Now()
	for _, key := range keys[:n] {
		q.Add(key)
	}
	q.ShutDown()
	workers.Wait()
	must(int(next.Load()) == n, "number of handlers")
	printSpread(gaps)
}
