module wq/bench/peers/sqlite

go 1.21

require (
	github.com/mattn/go-sqlite3 v1.14.28
	maragu.dev/goqite v0.3.1
)
