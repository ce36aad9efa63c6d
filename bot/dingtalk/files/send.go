package files

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"path"
	"strings"

	"ebb/sessions"
)

// Form is the body of an upload.
type Form struct {
	Type string // its content type, with the boundary
	Data []byte
}

// FormOf is the body that uploads a file.
func FormOf(f sessions.File) (Form, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("media", f.Name)
	if err == nil {
		_, err = part.Write(f.Body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return Form{}, fmt.Errorf("encoding a file: %w", err)
	}
	return Form{Type: w.FormDataContentType(), Data: b.Bytes()}, nil
}

type image struct {
	URL string `json:"photoURL"` // or the id of an upload
}

type file struct {
	Media string `json:"mediaId"`
	Name  string `json:"fileName"`
	Type  string `json:"fileType"` // extension
}

// Message is the key and the parameters of the message that shows an uploaded file.
func Message(f sessions.File) (key string, param any) {
	if f.Kind == sessions.FileImage {
		return "sampleImageMsg", image{f.Media}
	}
	return "sampleFile", file{f.Media, f.Name, strings.TrimPrefix(path.Ext(f.Name), ".")}
}
