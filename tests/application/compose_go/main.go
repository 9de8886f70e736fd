// Command compose_go prints Compose projects as `docker compose config --format json` does, with the library that it uses.
//
// Its arguments are folders; it prints one JSON object: folder to project, or to the text of the error.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func load(folder string) ([]byte, error) {
	options, err := cli.NewProjectOptions(nil,
		cli.WithWorkingDirectory(folder),
		cli.WithOsEnv,
		cli.WithConfigFileEnv,
		cli.WithDefaultConfigPath,
		cli.WithEnvFiles(),
		cli.WithDotEnv,
		cli.WithDefaultProfiles(),
	)
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return nil, err
	}
	return project.MarshalJSON()
}

func main() {
	found := map[string]json.RawMessage{}
	for _, folder := range os.Args[1:] {
		printed, err := load(folder)
		if err != nil {
			printed, _ = json.Marshal(err.Error())
		}
		found[folder] = printed
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
