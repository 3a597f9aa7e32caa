module wq/bench/peers/sqlite

go 1.21

require (
	github.com/mattn/go-sqlite3 v1.14.28
	maragu.dev/goqite v0.3.1
	wq/bench/peers/measure v0.0.0
)

replace wq/bench/peers/measure => ../measure
