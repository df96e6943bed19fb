package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"syscall"
	"time"
)

const (
	// A stack that grows without end is found before it has eaten the machine's memory.
	stackLimit  = 256 << 20
	memoryLimit = 6 << 30
)

var operations = map[string]func(line []byte) (any, error){
	"allocate": decoded(allocate),
	"cel":      decoded(evaluate),
	"quantity": decoded(readQuantity),
	"semver":   decoded(readSemver),
	"name":     decoded(checkName),
}

// callLimit is the time that a question grants to one call of the code in question.
type callLimit struct {
	TimeoutMs int64 `json:"timeoutMs"`
}

func (l callLimit) timeout() time.Duration {
	if l.TimeoutMs <= 0 {
		return 10 * time.Second
	}
	return time.Duration(l.TimeoutMs) * time.Millisecond
}

func work(in io.Reader, out io.Writer) {
	debug.SetMaxStack(stackLimit)
	must(syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: memoryLimit, Max: memoryLimit}))
	reader := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return
		}
		var buffer bytes.Buffer
		encoder := json.NewEncoder(&buffer)
		encoder.SetEscapeHTML(false)
		must(encoder.Encode(answer(line)))
		if _, err := out.Write(buffer.Bytes()); err != nil {
			return
		}
	}
}

func answer(line []byte) (result any) {
	defer func() {
		if reason := recover(); reason != nil {
			result = map[string]string{"panic": fmt.Sprint(reason)}
		}
	}()
	var question struct {
		Op string `json:"op"`
	}
	if err := json.Unmarshal(line, &question); err != nil {
		return badQuestion(err)
	}
	operation, ok := operations[question.Op]
	if !ok {
		return badQuestion(fmt.Errorf("unknown op %q", question.Op))
	}
	result, err := operation(line)
	if err != nil {
		return badQuestion(err)
	}
	return result
}

func decoded[Q, A any](operation func(Q) A) func(line []byte) (any, error) {
	return func(line []byte) (any, error) {
		var question Q
		if err := json.Unmarshal(line, &question); err != nil {
			return nil, err
		}
		return operation(question), nil
	}
}

func badQuestion(err error) any {
	return map[string]string{"badQuestion": err.Error()}
}

func microseconds(duration time.Duration) float64 {
	return float64(duration.Nanoseconds()) / 1000
}
