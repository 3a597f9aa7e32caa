// SPDX-License-Identifier: MIT

// How fast is goqite? Called by bench_sqlite:
//
//	bench_goqite NORMAL|FULL THREADS MILLISECONDS FILE
//
// So many goroutines send a message, receive one and delete it, in turn. Prints
// the number of cycles, and the seconds of wall and of processor time.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"maragu.dev/goqite"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench_goqite:", err)
		os.Exit(1)
	}
}

func cpu() time.Duration {
	var r syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// As goqite's README opens it: one connection, WAL.
func open(mode, path string) *goqite.Queue {
	db, err := sql.Open("sqlite3", "file:"+path+
		"?_journal=WAL&_timeout=5000&_fk=true&_sync="+mode)
	must(err)
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	must(goqite.Setup(context.Background(), db))
	return goqite.New(goqite.NewOpts{DB: db, Name: "bench"})
}

func cycle(q *goqite.Queue, number int, stop *atomic.Bool) int {
	ctx := context.Background()
	n := 0
	for ; !stop.Load(); n++ {
		key := fmt.Sprintf("namespace-%04d/pod-%012d", n%1000,
			number*1000000000+n)
		must(q.Send(ctx, goqite.Message{Body: []byte(key)}))
		m, err := q.Receive(ctx)
		must(err)
		if m == nil {
			must(fmt.Errorf("no message, although one was sent"))
		}
		must(q.Delete(ctx, m.ID))
	}
	return n
}

func main() {
	if len(os.Args) != 5 {
		must(fmt.Errorf("usage: NORMAL|FULL THREADS MILLISECONDS FILE"))
	}
	threads, err := strconv.Atoi(os.Args[2])
	must(err)
	span, err := strconv.Atoi(os.Args[3])
	must(err)
	q := open(os.Args[1], os.Args[4])

	var all sync.WaitGroup
	var stop atomic.Bool
	var cycles atomic.Int64
	begin, beginCPU := time.Now(), cpu()
	for i := 0; i < threads; i++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			cycles.Add(int64(cycle(q, number, &stop)))
		}(i)
	}
	time.Sleep(time.Duration(span) * time.Millisecond)
	stop.Store(true)
	all.Wait()
	fmt.Println(cycles.Load(), time.Since(begin).Seconds(),
		(cpu() - beginCPU).Seconds())
}
