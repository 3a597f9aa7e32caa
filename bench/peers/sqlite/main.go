// SPDX-License-Identifier: MIT

// How fast is goqite? Called by bench_sqlite:
//
//	bench_goqite NORMAL|FULL THREADS MILLISECONDS FILE
//
// So many goroutines send a message, receive one and delete it, in turn.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"maragu.dev/goqite"

	"wq/bench/peers/measure"
)

// As goqite's README opens it: one connection, WAL.
func open(mode, path string) *goqite.Queue {
	db, err := sql.Open("sqlite3", "file:"+path+
		"?_journal=WAL&_timeout=5000&_fk=true&_sync="+mode)
	measure.Must(err)
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	measure.Must(goqite.Setup(context.Background(), db))
	return goqite.New(goqite.NewOpts{DB: db, Name: "bench"})
}

func cycle(q *goqite.Queue, number int, until time.Time) int {
	ctx := context.Background()
	n := 0
	for ; time.Now().Before(until); n++ {
		key := measure.Key(number, n)
		measure.Must(q.Send(ctx, goqite.Message{Body: []byte(key)}))
		m, err := q.Receive(ctx)
		measure.Must(err)
		if m == nil {
			measure.Must(fmt.Errorf("no message, although one was sent"))
		}
		measure.Must(q.Delete(ctx, m.ID))
	}
	return n
}

func main() {
	task := measure.Read()
	q := open(task.Mode, task.Where)
	watch := measure.Start()
	until := time.Now().Add(task.Span)
	watch.Print(measure.Each(task.Threads, func(number int) int {
		return cycle(q, number, until)
	}))
}
