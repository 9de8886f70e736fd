module steersman.example.com/bench/probed_program

go 1.26.0
