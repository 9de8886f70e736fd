module steersman.example.com/bench/proxy_go

go 1.26.0
