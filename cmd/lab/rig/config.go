package rig

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// WriteConfig writes a gateway's config and returns its file.
func WriteConfig(dir, name string, config any) (string, error) {
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return "", fmt.Errorf("writing the config of gateway %s: %w", name, err)
	}
	path := filepath.Join(dir, name+".json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("writing the config of gateway %s: %w", name, err)
	}
	return path, nil
}
