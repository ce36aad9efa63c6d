package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxText bounds a result, in bytes. The log stores it whole up to this.
const maxText = 1 << 20

// textOf renders a result for the model. Parts that are no text are named. Structured content stands for texts that are missing.
func textOf(r *mcp.CallToolResult) string {
	var parts []string
	for _, c := range r.Content {
		if part := partOf(c); part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if raw, err := json.Marshal(r.StructuredContent); err == nil {
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

func partOf(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return fmt.Sprintf("[picture, %s, %d bytes: not shown]", kindOf(c.MIMEType), len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("[sound, %s, %d bytes: not shown]", kindOf(c.MIMEType), len(c.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[resource %s, %s]", c.Name, c.URI)
	case *mcp.EmbeddedResource:
		if c.Resource == nil {
			return ""
		}
		if c.Resource.Text != "" {
			return c.Resource.Text
		}
		return fmt.Sprintf("[resource %s, %d bytes: not shown]", c.Resource.URI, len(c.Resource.Blob))
	}
	return ""
}

func kindOf(mime string) string {
	if mime == "" {
		return "unknown type"
	}
	return cut(mime, maxName)
}

// storable drops what PostgreSQL refuses.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "")
}

// cut shortens text to at most limit bytes, at a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
