// Docker's own reader of a Dockerfile.
package main

import (
	"bytes"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

type stage struct {
	Base     string    `json:"base"`
	Name     string    `json:"name"`
	Commands []command `json:"commands"`
}

type command struct {
	Name string `json:"name"`
	// Of COPY.
	From    string   `json:"from,omitempty"`
	Sources []string `json:"sources,omitempty"`
	Target  string   `json:"target,omitempty"`
	// Of ENTRYPOINT, CMD, HEALTHCHECK and RUN.
	Words []string `json:"words,omitempty"`
	// Of ENV.
	Variables map[string]string `json:"variables,omitempty"`
	// Of USER and VOLUME.
	Value string `json:"value,omitempty"`
}

func readDockerfile(text []byte) report {
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return refused(err)
	}
	faults := []string{}
	warn := func(rule, description, url, message string, _ []parser.Range) {
		faults = append(faults, rule+": "+message)
	}
	stages, _, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{Warn: warn}))
	if err != nil {
		return refused(err)
	}
	read := []stage{}
	for _, each := range stages {
		commands := []command{}
		for _, of := range each.Commands {
			commands = append(commands, readCommand(of))
		}
		read = append(read, stage{Base: each.BaseName, Name: each.Name, Commands: commands})
	}
	return report{Faults: faults, Read: read}
}

func readCommand(of instructions.Command) command {
	read := command{Name: of.Name()}
	switch of := of.(type) {
	case *instructions.CopyCommand:
		read.From, read.Sources, read.Target = of.From, of.SourcePaths, of.DestPath
	case *instructions.EntrypointCommand:
		read.Words = of.CmdLine
	case *instructions.CmdCommand:
		read.Words = of.CmdLine
	case *instructions.HealthCheckCommand:
		read.Words = of.Health.Test
	case *instructions.RunCommand:
		read.Words = of.CmdLine
	case *instructions.EnvCommand:
		read.Variables = map[string]string{}
		for _, pair := range of.Env {
			read.Variables[pair.Key] = pair.Value
		}
	case *instructions.UserCommand:
		read.Value = of.User
	case *instructions.VolumeCommand:
		read.Value = of.Volumes[0]
	}
	return read
}
