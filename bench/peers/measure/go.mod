module wq/bench/peers/measure

go 1.21
