module steersman.example.com/tests/golang/go_regexp

go 1.26.0
