module steersman.example.com/bench/bare_go

go 1.26.0
