package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxText bounds a result, in bytes. The log stores it whole up to this.
const maxText = 1 << 20

// result is the result of a call on its way to the model.
type result struct {
	tool  string
	send  func(name string, body []byte) error              // nil: no file is sent
	read  func(uri string) (*mcp.ReadResourceResult, error) // asks the server for a resource
	sent  int                                               // files
	links int                                               // resources that were linked to
}

// textOf renders a result for the model. Parts that are no text are sent or named. Structured content stands for texts that are missing.
func (r *result) textOf(of *mcp.CallToolResult) string {
	var parts []string
	for _, c := range of.Content {
		if part := r.partOf(c); part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 && of.StructuredContent != nil {
		if raw, err := json.Marshal(of.StructuredContent); err == nil {
			parts = append(parts, string(raw))
		}
	}
	if len(parts) == 0 {
		return "The tool returned nothing."
	}
	text := storable(strings.Join(parts, "\n"))
	if len(text) > maxText {
		text = fmt.Sprintf("%s\n[The result had %d bytes, and ends here.]", cut(text, maxText), len(text))
	}
	return text
}

func (r *result) partOf(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		name := r.tool
		if r.sent > 0 {
			name = fmt.Sprintf("%s-%d", r.tool, r.sent+1)
		}
		return r.sendFile("picture, "+kindOf(c.MIMEType), name, c.Data)
	case *mcp.AudioContent:
		return fmt.Sprintf("[sound, %s, %d bytes: not shown]", kindOf(c.MIMEType), len(c.Data))
	case *mcp.ResourceLink:
		return r.readLink(c)
	case *mcp.EmbeddedResource:
		if c.Resource == nil {
			return ""
		}
		if c.Resource.Text != "" {
			return c.Resource.Text
		}
		return r.sendFile("resource "+c.Resource.URI, nameAt(c.Resource.URI), c.Resource.Blob)
	}
	return ""
}

// sendFile sends a file, and returns words about that for the model.
func (r *result) sendFile(part, name string, body []byte) string {
	if r.send == nil {
		return fmt.Sprintf("[%s, %d bytes: not shown]", part, len(body))
	}
	if err := r.send(name, body); err != nil {
		return fmt.Sprintf("[%s, %d bytes: not sent, %s]", part, len(body), err)
	}
	r.sent++
	return fmt.Sprintf("[%s, %d bytes: people get it as a file behind your answer]", part, len(body))
}

// maxLinks bounds the resources of a result that are read.
const maxLinks = 4

// readLink asks the server itself for a resource that it links to. No other address is read.
func (r *result) readLink(c *mcp.ResourceLink) string {
	named := fmt.Sprintf("[resource %s, %s]", c.Name, c.URI)
	if r.links++; r.send == nil || r.links > maxLinks {
		return named
	}
	found, err := r.read(c.URI)
	if err != nil || found == nil {
		return named
	}
	var parts []string
	for _, one := range found.Contents {
		if one != nil && len(one.Blob) > 0 { // a model asks for texts by other tools
			parts = append(parts, r.sendFile("resource "+c.URI, cmp.Or(c.Name, nameAt(c.URI)), one.Blob))
		}
	}
	return strings.Join(append([]string{named}, parts...), "\n")
}

// nameAt is the last part of the path of an address.
func nameAt(uri string) string {
	if u, err := url.Parse(uri); err == nil {
		return path.Base(u.Path)
	}
	return path.Base(uri)
}

func kindOf(mime string) string {
	if mime == "" {
		return "unknown type"
	}
	return cut(mime, maxName)
}
