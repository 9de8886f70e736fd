// Serves HTTP at the port of its argument and prints ten lines a second.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	go func() {
		for number := 0; ; number++ {
			fmt.Println("a line of output with a number", number)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	http.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
