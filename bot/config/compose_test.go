package config

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// composeFile has the keys of deploy/compose.yaml. Another key there is a mistake, or belongs here.
type composeFile struct {
	Name     string                    `yaml:"name"`
	Services map[string]composeService `yaml:"services"`
	Secrets  map[string]struct {
		File string `yaml:"file"`
	} `yaml:"secrets"`
	Volumes map[string]struct{} `yaml:"volumes"`
}

type composeService struct {
	Build       string            `yaml:"build"`
	Image       string            `yaml:"image"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Volumes     []string          `yaml:"volumes"`
	Secrets     []string          `yaml:"secrets"`
	DependsOn   map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Ports       []string `yaml:"ports"`
	Healthcheck struct {
		Test        []string      `yaml:"test"`
		Interval    time.Duration `yaml:"interval"`
		Timeout     time.Duration `yaml:"timeout"`
		StartPeriod time.Duration `yaml:"start_period"`
	} `yaml:"healthcheck"`
	StopGracePeriod time.Duration `yaml:"stop_grace_period"`
	Restart         string        `yaml:"restart"`
	ReadOnly        bool          `yaml:"read_only"`
	CapDrop         []string      `yaml:"cap_drop"`
	SecurityOpt     []string      `yaml:"security_opt"`
	MemLimit        string        `yaml:"mem_limit"`
	ShmSize         string        `yaml:"shm_size"`
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	text, err := os.ReadFile("../../deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c composeFile
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Docker waits for a stop as long as the configuration says, and asks the program itself for its health. All secrets are in files outside
// of the image and of the environment.
func TestComposeFits(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	ebb, postgres := c.Services["ebb"], c.Services["postgres"]
	const file = "/etc/ebb/compose.jsonc"
	if want := Default().Shutdown.Grace; ebb.StopGracePeriod != want {
		t.Errorf("stop_grace_period is %s, shutdown.grace %s", ebb.StopGracePeriod, want)
	}
	if want := []string{"CMD", "/bot", "healthcheck", "--config", file}; !slices.Equal(ebb.Healthcheck.Test, want) {
		t.Errorf("health by %q, want %q", ebb.Healthcheck.Test, want)
	}
	if want := []string{"serve", "--config", file}; !slices.Equal(ebb.Command, want) || !slices.Contains(ebb.Volumes, "./compose.jsonc:"+file+":ro") {
		t.Errorf("command %q, volumes %q", ebb.Command, ebb.Volumes)
	}
	if ebb.DependsOn["postgres"].Condition != "service_healthy" || len(postgres.Healthcheck.Test) == 0 {
		t.Errorf("Ebb does not wait for a healthy database: %+v", ebb.DependsOn)
	}
	for _, p := range ebb.Ports {
		if !strings.HasPrefix(p, "127.0.0.1:") {
			t.Errorf("port %s is open to other machines", p)
		}
	}
	for name, s := range c.Services {
		for _, secret := range s.Secrets {
			if c.Secrets[secret].File != "./secrets/"+secret {
				t.Errorf("%s: the secret %s is in %q", name, secret, c.Secrets[secret].File)
			}
		}
		for variable := range s.Environment {
			if regexp.MustCompile(`SECRET|KEY|TOKEN|PASSWORD$`).MatchString(variable) {
				t.Errorf("%s: the secret %s is in the environment", name, variable)
			}
		}
	}
	git, err := os.ReadFile("../../.gitignore")
	if err != nil || !strings.Contains(string(git), "\nsecrets/\n") {
		t.Errorf("secrets can be committed: %v", err)
	}
	docker, err := os.ReadFile("../../.dockerignore")
	if err != nil || !strings.Contains(string(docker), "\n*\n") || strings.Contains(string(docker), "!deploy") {
		t.Errorf("secrets are sent to the builder: %v", err)
	}
}

// The configuration of the service is right with the secrets of the service, and has no warning.
func TestComposeConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, secret := range readCompose(t).Services["ebb"].Secrets {
		if err := os.WriteFile(filepath.Join(dir, secret), []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../../deploy/compose.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.ReplaceAll(text, []byte("/run/secrets"), []byte(dir))
	cfg, err := parseConfig("compose.jsonc", data, credentials(), NeedServe)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Warnings) > 0 || cfg.Admin.Token == "" || cfg.Shutdown != Default().Shutdown {
		t.Errorf("warnings %q, token %q, shutdown %+v", cfg.Warnings, cfg.Admin.Token, cfg.Shutdown)
	}
}
