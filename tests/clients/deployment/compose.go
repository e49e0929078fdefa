// Compose's own loader: its schema, the variables, and that what is named is there.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

func readCompose(text []byte) report {
	details := types.ConfigDetails{
		WorkingDir:  ".",
		ConfigFiles: []types.ConfigFile{{Filename: os.Args[2], Content: text}},
		Environment: types.NewMapping(os.Environ()),
	}
	project, err := loader.LoadWithContext(context.Background(), details)
	if err != nil {
		return refused(err)
	}
	read, err := project.MarshalJSON()
	if err != nil {
		return refused(err)
	}
	return report{Faults: []string{}, Read: json.RawMessage(read)}
}
