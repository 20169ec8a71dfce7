// A simple self-written receiver with net/http, encoding/json and redigo's pool. For each request it reads the body into a reused
// buffer, calls json.Unmarshal (or only json.Valid with -check), appends the body with one XADD, and responds 200 after the reply of Redis.
//
// usage: receiver [-check] <redis socket>; prints its port. The environment sets GOMAXPROCS and GOGC.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	poolSize     = 64
	maxBodyBytes = 1 << 20
	// Larger than a command with its body. redigo's own buffer of 4 kB would need three writes for 12 kB.
	commandBytes = 64 << 10
)

var jsonType = []string{"application/json"}

// gathered buffers writes until the caller waits for a reply, so that a command is sent in one write.
type gathered struct {
	net.Conn
	pending *bufio.Writer
}

func (c gathered) Write(p []byte) (int, error) { return c.pending.Write(p) }

func (c gathered) Read(p []byte) (int, error) {
	if c.pending.Buffered() > 0 {
		if err := c.pending.Flush(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}

type receiver struct {
	pool      *redis.Pool
	buffers   sync.Pool
	checkOnly bool
}

func (rc *receiver) parse(body []byte) error {
	if rc.checkOnly {
		if !json.Valid(body) {
			return errors.New("the body is not JSON")
		}
		return nil
	}
	var value interface{}
	return json.Unmarshal(body, &value)
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	size := r.ContentLength
	if size < 0 || size > maxBodyBytes {
		http.Error(w, "the request must have a Content-Length below the limit", http.StatusRequestEntityTooLarge)
		return
	}
	buffer := rc.buffers.Get().(*[]byte)
	defer rc.buffers.Put(buffer)
	if int64(cap(*buffer)) < size {
		*buffer = make([]byte, size)
	}
	body := (*buffer)[:size]
	if _, err := io.ReadFull(r.Body, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := rc.parse(body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	conn := rc.pool.Get()
	entryID, err := redis.Bytes(conn.Do("XADD", "go", "MAXLEN", "~", 100000, "*", "data", body))
	conn.Close()
	if err != nil {
		http.Error(w, "Redis did not accept the entry", http.StatusServiceUnavailable)
		return
	}
	answer := make([]byte, 0, 64)
	answer = append(answer, `{"entryId":"`...)
	answer = append(answer, entryID...)
	answer = append(answer, `"}`...)
	header := w.Header()
	header["Content-Type"] = jsonType
	header["Content-Length"] = []string{strconv.Itoa(len(answer))}
	w.Write(answer)
}

func main() {
	checkOnly := flag.Bool("check", false, "check the JSON, make no values of it")
	flag.Parse()
	socket := flag.Arg(0)
	dial := func() (redis.Conn, error) {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return nil, err
		}
		return redis.NewConn(gathered{conn, bufio.NewWriterSize(conn, commandBytes)}, 0, 0), nil
	}
	rc := &receiver{
		pool: &redis.Pool{Dial: dial, MaxIdle: poolSize, MaxActive: poolSize, Wait: true, IdleTimeout: time.Minute},
		buffers: sync.Pool{New: func() interface{} {
			bytes := make([]byte, 16<<10)
			return &bytes
		}},
		checkOnly: *checkOnly,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, rc))
}
