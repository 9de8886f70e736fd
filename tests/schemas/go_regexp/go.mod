module steersman.example.com/tests/schemas/go_regexp

go 1.26.0
