package sessions

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// blobBytes is how much of a body's hash is its address: no two bodies meet by chance, and models read it often.
const blobBytes = 16

// BlobOf is the address of a body: the same body has the same one.
func BlobOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:blobBytes])
}

// blobDir is where references say that bodies are.
const blobDir = "offloaded/"

// BlobPath is how a view names a body to the model.
func BlobPath(blob string) string { return blobDir + blob + ".txt" }

// GetTool is the tool that reads paths.
const GetTool = "memory_get"

// BlobCall is the call that reads a body, as a view names it.
func BlobCall(blob string) string { return fmt.Sprintf(`%s {"path":"%s"}`, GetTool, BlobPath(blob)) }

// BlobAt is the address that a path names, and whether it names one. That the session has such a body is for the store
// to say.
func BlobAt(path string) (blob string, ok bool) {
	blob, ok = strings.CutSuffix(path, ".txt")
	if blob, is := strings.CutPrefix(blob, blobDir); ok && is && len(blob) == 2*blobBytes {
		_, err := hex.DecodeString(blob)
		return blob, err == nil
	}
	return "", false
}

// Unavailable stands for a body that can't be read any more.
func Unavailable(blob string) string { return "[Content unavailable: " + BlobPath(blob) + "]" }
