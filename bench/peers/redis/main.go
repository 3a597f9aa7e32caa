// SPDX-License-Identifier: MIT

// How fast is asynq? Called by bench_redis:
//
//	bench_asynq Unique THREADS MILLISECONDS SOCKET
//
// So many goroutines enqueue unique tasks for half of the time; then a server
// with as many workers processes all of them.
package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"wq/bench/peers/measure"
)

func enqueue(c *asynq.Client, number int, until time.Time) int {
	n := 0
	for ; n == 0 || time.Now().Before(until); n++ {
		task := asynq.NewTask("key", []byte(measure.Key(number, n)))
		_, err := c.Enqueue(task, asynq.Unique(time.Hour))
		measure.Must(err)
	}
	return n
}

// Process so many tasks.
func process(redis asynq.RedisClientOpt, threads int, tasks int64) {
	var done atomic.Int64
	finished := make(chan struct{})
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: threads, LogLevel: asynq.FatalLevel})
	measure.Must(server.Start(asynq.HandlerFunc(
		func(context.Context, *asynq.Task) error {
			if done.Add(1) == tasks {
				close(finished)
			}
			return nil
		})))
	<-finished
}

func main() {
	task := measure.Read()
	// As many connections as threads, as the lists have.
	redis := asynq.RedisClientOpt{
		Network: "unix", Addr: task.Where, PoolSize: task.Threads + 4}
	client := asynq.NewClient(redis)
	watch := measure.Start()
	until := time.Now().Add(task.Span / 2)
	tasks := measure.Each(task.Threads, func(number int) int {
		return enqueue(client, number, until)
	})
	process(redis, task.Threads, tasks)
	watch.Print(tasks)
}
