module steersman.example.com/tests/golang/go_texts

go 1.26.0
