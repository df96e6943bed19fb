// Command upstream answers questions about allocation, selectors, quantities, versions and names with the code that
// Kubernetes runs. It reads one JSON question a line and writes one JSON answer a line, in order.
//
// The process that is started only supervises: a worker, the same program, answers. What Go cannot survive, such as a
// stack overflow, and what does not end cost the worker only, and the answer is {"panic": "…"}.
package main

import (
	"os"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerArgument {
		work(os.Stdin, os.Stdout)
		return
	}
	supervise(os.Stdin, os.Stdout)
}
