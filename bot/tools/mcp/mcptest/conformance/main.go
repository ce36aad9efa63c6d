// Command conformance calls tools of the reference servers of the Model Context Protocol, over standard input and output and over HTTP,
// through the client that the bot uses. It needs node and npm, and installs the servers into a temporary folder.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"ebb/bot/chat"
	"ebb/bot/nodetest"
	"ebb/bot/tools/mcp"
	"ebb/sessions"
	"ebb/sessions/retry"
)

//go:embed package.json
var packageJSON []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		stop()
		os.Exit(1)
	}
	fmt.Println("conformance: the reference servers of MCP and the client agree")
}

func run(ctx context.Context, out, log io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	dir, err := nodetest.Install(ctx, log, map[string][]byte{"package.json": packageJSON})
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	docs := filepath.Join(dir, "docs")
	if err := errors.Join(os.Mkdir(docs, 0o700), os.WriteFile(filepath.Join(docs, "handbook.md"), []byte("第三章：报销在周五提交"), 0o600)); err != nil {
		return err
	}
	address, stop, err := overHTTP(ctx, dir, log)
	if err != nil {
		return err
	}
	defer stop()
	server := func(name, command string, args ...string) mcp.Server {
		return mcp.Server{
			Name: name, Command: filepath.Join(dir, "node_modules", ".bin", command), Args: args, Allow: []string{"*"}, Groups: []string{"*"},
			Timeout: 20 * time.Second, MaxResultTokens: 8000,
		}
	}
	web := server("web", "")
	web.Command, web.URL = "", address
	memory := server("notes", "mcp-server-memory")
	memory.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "notes.jsonl")}
	pool := mcp.New(mcp.Config{
		Version: "conformance", Now: time.Now,
		Servers: []mcp.Server{server("every", "mcp-server-everything"), server("files", "mcp-server-filesystem", docs), memory, web},
	})
	alive, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { pool.Run(alive) })
	defer running.Wait()
	defer end()
	pool.AwaitTried(ctx)
	for _, s := range pool.Status() {
		if !s.Connected {
			return fmt.Errorf("%s: %s", s.Name, s.Fault)
		}
		fmt.Fprintf(out, "ok   %s offers %d tools\n", s.Name, s.Tools)
	}
	return calls(ctx, out, pool, docs)
}

// calls makes one call of each kind. A call with an empty want must fail.
func calls(ctx context.Context, out io.Writer, pool *mcp.Pool, docs string) error {
	for _, c := range []struct{ tool, args, want string }{
		{"every__echo", `{"message":"你好"}`, "你好"},
		{"web__echo", `{"message":"over HTTP"}`, "over HTTP"},
		{"every__get-sum", `{"a":2,"b":40}`, "42"},
		{"every__get-tiny-image", `{}`, "[picture, image/png"},
		{"every__echo", `{}`, ""},
		{"files__read_text_file", `{"path":` + strconv.Quote(filepath.Join(docs, "handbook.md")) + `}`, "报销在周五提交"},
		{"files__read_text_file", `{"path":"/etc/hostname"}`, ""},
		{"notes__create_entities", `{"entities":[{"name":"张伟","entityType":"person","observations":["在杭州"]}]}`, "张伟"},
		{"notes__read_graph", `{}`, "在杭州"},
	} {
		got, err := call(ctx, pool, c.tool, c.args)
		if refused := err != nil; refused != (c.want == "") || !strings.Contains(got, c.want) {
			return fmt.Errorf("%s %s: got %q, %v", c.tool, c.args, got, err) //nolint:errorlint // there may be none
		}
		fmt.Fprintf(out, "ok   %s %s\n", c.tool, c.args)
	}
	return nil
}

func call(ctx context.Context, pool *mcp.Pool, name, args string) (string, error) {
	for _, tool := range pool.Tools("cid", sessions.Group) {
		if tool.Spec().Name == name {
			return tool.Call(ctx, chat.ToolInput{Arguments: args})
		}
	}
	return "", fmt.Errorf("no server offers %s", name)
}

// overHTTP starts a server on a free port, and waits until it accepts connections.
func overHTTP(ctx context.Context, dir string, log io.Writer) (address string, stop func(), err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	host := free.Addr().String()
	if err := free.Close(); err != nil {
		return "", nil, err
	}
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return "", nil, err
	}
	alive, end := context.WithCancel(ctx)
	node := exec.CommandContext(alive, filepath.Join(dir, "node_modules", ".bin", "mcp-server-everything"), "streamableHttp") //nolint:gosec // installed by this program
	node.Env, node.Stdout, node.Stderr = append(os.Environ(), "PORT="+port), log, log
	if err := node.Start(); err != nil {
		end()
		return "", nil, err
	}
	stop = func() {
		end()
		_ = node.Wait() // it was killed
	}
	err = retry.Do(ctx, retry.Storage, func() error {
		c, err := net.DialTimeout("tcp", host, time.Second)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	if err != nil {
		stop()
		return "", nil, err
	}
	return "http://" + host + "/mcp", stop, nil
}
