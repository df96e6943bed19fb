package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	workerArgument = "worker"
	// What a question may take beyond the time that it grants the call itself.
	grace = 5 * time.Second
)

// supervise passes questions to a worker, and replaces the worker when it ends or stays silent.
func supervise(in io.Reader, out io.Writer) {
	reader := bufio.NewReaderSize(in, 1<<20)
	var current *worker
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if current == nil {
				current = startWorker()
			}
			answer, ok := current.ask(bytes.TrimRight(line, "\r\n"))
			if !ok {
				current = nil
			}
			if _, err := out.Write(append(answer, '\n')); err != nil {
				return
			}
		}
		if err != nil {
			if current != nil {
				current.stop()
			}
			return
		}
	}
}

type worker struct {
	command *exec.Cmd
	in      io.WriteCloser
	answers chan []byte
	stderr  *head
}

func startWorker() *worker {
	command := exec.Command(os.Args[0], workerArgument)
	command.Env = append(os.Environ(), "GOTRACEBACK=none")
	w := &worker{command: command, answers: make(chan []byte), stderr: &head{}}
	command.Stderr = w.stderr
	in, err := command.StdinPipe()
	must(err)
	out, err := command.StdoutPipe()
	must(err)
	must(command.Start())
	w.in = in
	go func() {
		defer close(w.answers)
		reader := bufio.NewReaderSize(out, 1<<20)
		for {
			answer, err := reader.ReadBytes('\n')
			if err != nil {
				return
			}
			w.answers <- bytes.TrimRight(answer, "\n")
		}
	}()
	return w
}

// ask returns the worker's answer, and whether the worker can be asked again.
func (w *worker) ask(line []byte) ([]byte, bool) {
	limit := timeLimit(line)
	// A worker that has ended does not read; that shows when it does not answer.
	go w.in.Write(append(line, '\n'))
	select {
	case answer, ok := <-w.answers:
		if ok {
			return answer, true
		}
		w.command.Wait()
		return panicAnswer(w.stderr.text()), false
	case <-time.After(limit):
		w.stop()
		return panicAnswer(fmt.Sprintf("no answer within %s", limit)), false
	}
}

func (w *worker) stop() {
	w.in.Close()
	w.command.Process.Kill()
	for range w.answers {
	}
	w.command.Wait()
}

func timeLimit(line []byte) time.Duration {
	var question struct {
		callLimit
		Repeat int `json:"repeat"`
	}
	// A question that cannot be read is the worker's to answer.
	_ = json.Unmarshal(line, &question)
	return question.timeout()*time.Duration(max(1, question.Repeat)) + grace
}

func panicAnswer(text string) []byte {
	answer, err := json.Marshal(map[string]string{"panic": text})
	must(err)
	return answer
}

// head keeps the beginning of what is written to it.
type head struct {
	mutex sync.Mutex
	kept  []byte
}

func (h *head) Write(data []byte) (int, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.kept = append(h.kept, data[:min(len(data), 4096-len(h.kept))]...)
	return len(data), nil
}

func (h *head) text() string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	text := strings.TrimSpace(string(h.kept))
	if text == "" {
		return "the worker ended"
	}
	return text
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
