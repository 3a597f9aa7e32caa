// SPDX-License-Identifier: MIT

// What do deadlines and sleep cost, and how exact are they? The counterpart of
// bench/rows/waiting.c, which describes each measurement.
package main

import (
	"runtime"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	wakes  = 500
	timers = 1000
)

type delaying = workqueue.TypedDelayingInterface[string]

// after: AddAfter of n keys, and get and done of them all.
func after(create func() delaying, n int) {
	n = scaled(n)
	makeKeys(n)
	ahead := time.Duration(n)*3*time.Microsecond + 10*time.Millisecond
	state := uint64(1)
	q := create()

	start := begin()
	first := start.Add(ahead)
	for _, key := range keys {
		r := time.Duration(random(&state) % uint64(time.Millisecond))
		q.AddAfter(key, time.Until(first)+r)
	}
	added := time.Now()
	time.Sleep(first.Sub(added))
	for range n {
		getAndDone(q)
	}
	end := time.Now()

	fired := end.Sub(first)
	if added.After(first) {
		fired = end.Sub(added)
	}
	printEach(added.Sub(start)+fired, n)
	printFigure("add_ns", float64(added.Sub(start))/float64(n))
	printFigure("fire_ns", float64(fired)/float64(n))
	q.ShutDown()
}

// late: how late are keys that were added with delays of 1 to 50 ms?
func late(create func() delaying, n int) {
	makeKeys(n)
	due := make([]time.Time, n)
	lateness := make([]time.Duration, n)
	state := uint64(1)
	q := create()
	begin()
	for i, key := range keys {
		delay := time.Millisecond +
			time.Duration(random(&state)%49000)*time.Microsecond
		due[i] = time.Now().Add(delay)
		q.AddAfter(key, delay)
	}
	for k := range n {
		key, shutdown := q.Get()
		must(!shutdown, "Get")
		lateness[k] = time.Since(due[keyNumber(key)])
		q.Done(key)
	}
	printSpread(lateness)
	q.ShutDown()
}

// wake: how long until a sleeping consumer has the key?
func wake(create func() queue, n int) {
	n = min(n, scaled(n*10))
	makeKeys(n)
	added := make([]time.Time, n)
	took := make([]time.Duration, n)
	q := create()
	var consumer sync.WaitGroup
	begin()
	consumer.Go(func() {
		for i := 0; ; i++ {
			key, shutdown := q.Get()
			if shutdown {
				return
			}
			took[i] = time.Since(added[i])
			q.Done(key)
		}
	})
	for i, key := range keys {
		time.Sleep(2 * time.Millisecond)
		added[i] = time.Now()
		q.Add(key)
	}
	q.ShutDown()
	consumer.Wait()
	printSpread(took)
}

func cpuMicroseconds() float64 {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil, "getrusage")
	return float64(u.Utime.Sec+u.Stime.Sec)*1e6 +
		float64(u.Utime.Usec+u.Stime.Usec)
}

// idle: how much processor time does an idle queue use? One consumer sleeps in
// it, one key is due in an hour.
func idle(create func() delaying, ms int) {
	ms = scaled(10*ms) / 10
	makeKeys(1)
	q := create()
	var consumer sync.WaitGroup
	consumer.Go(func() {
		_, shutdown := q.Get()
		must(shutdown, "waiting for an hour")
	})
	q.AddAfter(keys[0], time.Hour)
	begin()
	time.Sleep(100 * time.Millisecond)
	before := cpuMicroseconds()
	time.Sleep(time.Duration(ms) * time.Millisecond)
	printFigure("cpu_us", cpuMicroseconds()-before)
	q.ShutDown()
	consumer.Wait()
}

// sleep sleeps as exactly as the C sides do: time.Sleep is coarser.
func sleep(d time.Duration) {
	if d > 0 {
		t := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&t, nil)
	}
}

// trickle: what does a key cost whose consumer is asleep? n keys per second for a
// second, at equal intervals: the processor time of the whole process per key.
func trickle(create func() queue, n int) {
	pause := time.Second / time.Duration(n)
	makeKeys(scaled(n))
	q := create()
	var consumer consumers
	runtime.LockOSThread()
	begin()
	consumer.start(q, 1, nil)
	sleep(10 * time.Millisecond)
	start, before := time.Now(), cpuMicroseconds()
	for i, key := range keys {
		sleep(time.Until(start.Add(pause * time.Duration(i+1))))
		q.Add(key)
	}
	printFigure("cpu_us", (cpuMicroseconds()-before)/float64(len(keys)))
	q.ShutDown()
	must(consumer.wait() == len(keys), "number of keys handed out")
}
