// Reads a file of deploy/ by the types of whoever is to run it, and prints as JSON what it says and what is wrong with it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

type report struct {
	Faults []string `json:"faults"`
	// What the file says, as its types write it.
	Read any `json:"read"`
}

var readers = map[string]func(text []byte) report{
	"compose":    readCompose,
	"dockerfile": readDockerfile,
	"kubernetes": readKubernetes,
}

func main() {
	if len(os.Args) != 3 || readers[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "deployment compose|dockerfile|kubernetes FILE")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[2])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(readers[os.Args[1]](text))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func refused(err error) report {
	return report{Faults: []string{err.Error()}}
}
