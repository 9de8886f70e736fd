// A TCP proxy with io.Copy to compare with, and the load for it: an endpoint, and the clients that measure.
//
//	proxy ENDPOINT           forwards to the endpoint; prints its address
//	endpoint [ADDRESS]       echoes messages, or sends bytes; prints its address
//	throughput ADDRESS CONNECTIONS SECONDS     prints bytes per second
//	latency ADDRESS CONNECTIONS RATE SECONDS   prints the latencies in nanoseconds, one per line
//	parallel ADDRESS CONNECTIONS               opens all at once, echoes on each, prints how many succeeded
//	restarts ADDRESS CONNECTIONS SECONDS       connects again after each failure; prints messages, lost connections, and
//	                                           connections that failed without a message, later than a killed endpoint can
//	                                           have taken them
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const message = 512

func main() {
	switch os.Args[1] {
	case "proxy":
		listen("127.0.0.1:0", func(client net.Conn) { forward(client, os.Args[2]) })
	case "endpoint":
		address := "127.0.0.1:0"
		if len(os.Args) > 2 {
			address = os.Args[2]
		}
		listen(address, serve)
	case "throughput":
		throughput(os.Args[2], number(3), seconds(4))
	case "latency":
		latency(os.Args[2], number(3), number(4), seconds(5))
	case "parallel":
		parallel(os.Args[2], number(3))
	case "restarts":
		restarts(os.Args[2], number(3), seconds(4))
	}
}

func listen(address string, handle func(net.Conn)) {
	listener, err := net.Listen("tcp", address)
	check(err)
	fmt.Println(listener.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go handle(conn)
	}
}

func forward(client net.Conn, endpoint string) {
	server, err := net.Dial("tcp", endpoint)
	if err != nil {
		client.Close()
		return
	}
	var both sync.WaitGroup
	both.Add(2)
	move := func(to, from net.Conn) {
		io.Copy(to, from)
		to.(*net.TCPConn).CloseWrite()
		both.Done()
	}
	go move(server, client)
	go move(client, server)
	both.Wait()
	client.Close()
	server.Close()
}

// The first byte of a connection is its mode: e echoes messages, d sends bytes until the client ends.
func serve(conn net.Conn) {
	defer conn.Close()
	mode := make([]byte, 1)
	if _, err := io.ReadFull(conn, mode); err != nil {
		return
	}
	if mode[0] == 'd' {
		data := make([]byte, 1<<18)
		for {
			if _, err := conn.Write(data); err != nil {
				return
			}
		}
	}
	reader, body := bufio.NewReader(conn), make([]byte, message)
	for {
		if _, err := io.ReadFull(reader, body); err != nil {
			return
		}
		if _, err := conn.Write(body); err != nil {
			return
		}
	}
}

func throughput(address string, connections int, duration time.Duration) {
	var total atomic.Int64
	var ready, done sync.WaitGroup
	var began time.Time
	start := make(chan struct{})
	ready.Add(connections)
	done.Add(connections)
	for range connections {
		go func() {
			defer done.Done()
			conn := dial(address, 'd')
			defer conn.Close()
			data := make([]byte, 1<<18)
			conn.Read(data)
			ready.Done()
			<-start
			conn.SetReadDeadline(began.Add(duration))
			for {
				count, err := conn.Read(data)
				total.Add(int64(count))
				if err != nil {
					return
				}
			}
		}()
	}
	ready.Wait()
	began = time.Now()
	close(start)
	done.Wait()
	fmt.Printf("%.0f\n", float64(total.Load())/time.Since(began).Seconds())
}

func latency(address string, connections, rate int, duration time.Duration) {
	var mutex sync.Mutex
	var all []time.Duration
	var done sync.WaitGroup
	done.Add(connections)
	interval := time.Second * time.Duration(connections) / time.Duration(rate)
	for index := range connections {
		go func() {
			defer done.Done()
			conn := dial(address, 'e')
			defer conn.Close()
			body := make([]byte, message)
			exchange(conn, body)
			next := time.Now().Add(interval * time.Duration(index) / time.Duration(connections))
			for end := next.Add(duration); next.Before(end); next = next.Add(interval) {
				time.Sleep(time.Until(next))
				began := time.Now()
				exchange(conn, body)
				taken := time.Since(began)
				mutex.Lock()
				all = append(all, taken)
				mutex.Unlock()
			}
		}()
	}
	done.Wait()
	out := bufio.NewWriter(os.Stdout)
	for _, each := range all {
		fmt.Fprintln(out, each.Nanoseconds())
	}
	out.Flush()
}

func parallel(address string, connections int) {
	var succeeded atomic.Int64
	var open, done sync.WaitGroup
	open.Add(connections)
	done.Add(connections)
	for index := range connections {
		go func() {
			defer done.Done()
			conn, err := net.Dial("tcp", address)
			if err != nil {
				open.Done()
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(30 * time.Second))
			conn.Write([]byte{'e'})
			open.Done()
			open.Wait()
			body, back := make([]byte, message), make([]byte, message)
			for round := range 10 {
				binary.LittleEndian.PutUint64(body, uint64(index*1000+round))
				conn.Write(body)
				if _, err := io.ReadFull(conn, back); err != nil || string(back) != string(body) {
					return
				}
			}
			succeeded.Add(1)
		}()
	}
	done.Wait()
	fmt.Println(succeeded.Load())
}

// How long the kernel may still accept connections for a killed process: it closes its listener last.
const dying = 50 * time.Millisecond

func restarts(address string, connections int, duration time.Duration) {
	var messages, lost, failed atomic.Int64
	var done sync.WaitGroup
	done.Add(connections)
	end := time.Now().Add(duration)
	for range connections {
		go func() {
			defer done.Done()
			var before time.Time
			for time.Now().Before(end) {
				count := session(address, end)
				messages.Add(count)
				now := time.Now()
				if now.After(end) {
					return
				}
				if count == 0 && !before.IsZero() && now.Sub(before) > dying {
					failed.Add(1)
				} else {
					lost.Add(1)
				}
				before = now
			}
		}()
	}
	done.Wait()
	fmt.Println(messages.Load(), lost.Load(), failed.Load())
}

// Exchanges messages on one connection until it fails or the time is over.
func session(address string, end time.Time) (count int64) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{'e'}); err != nil {
		return 0
	}
	body := make([]byte, message)
	for time.Now().Before(end) {
		if _, err := conn.Write(body); err != nil {
			return count
		}
		if _, err := io.ReadFull(conn, body); err != nil {
			return count
		}
		count++
		time.Sleep(5 * time.Millisecond)
	}
	return count
}

func dial(address string, mode byte) net.Conn {
	conn, err := net.Dial("tcp", address)
	check(err)
	_, err = conn.Write([]byte{mode})
	check(err)
	return conn
}

func exchange(conn net.Conn, body []byte) {
	_, err := conn.Write(body)
	check(err)
	_, err = io.ReadFull(conn, body)
	check(err)
}

func number(index int) int {
	value, err := strconv.Atoi(os.Args[index])
	check(err)
	return value
}

func seconds(index int) time.Duration { return time.Duration(number(index)) * time.Second }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
