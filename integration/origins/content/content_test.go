package content

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"strings"
	"testing"

	"golang.org/x/image/font/sfnt"
)

func TestTheSameURLGivesTheSameBytesAndAnotherURLOthers(t *testing.T) {
	for _, kind := range Kinds() {
		first, _ := Make(kind, "http://a.test/1", 0)
		again, _ := Make(kind, "http://a.test/1", 0)
		if !bytes.Equal(first, again) {
			t.Errorf("%s: two makings of one URL differ", kind)
		}
		if other, _ := Make(kind, "http://a.test/2", 0); kind != Pixel && kind != Font && bytes.Equal(first, other) {
			t.Errorf("%s: two URLs have the same bytes", kind)
		}
	}
}

func TestEveryKindOfImageDecodesAtEverySize(t *testing.T) {
	formats := map[Kind]string{JPEG: "jpeg", PNG: "png", GIF: "gif", Pixel: "gif"}
	for kind, want := range formats {
		for _, size := range []int{0, 100, 1_000, 1_001, 1_002, 1_003, 20_000, 150_000} {
			made, _ := Make(kind, fmt.Sprintf("http://a.test/%d", size), size)
			_, format, err := image.Decode(bytes.NewReader(made))
			if err != nil || format != want {
				t.Errorf("%s of %d bytes: format %q, error %v", kind, size, format, err)
			}
		}
	}
}

func TestAnObjectIsAsLongAsWasAskedFor(t *testing.T) {
	tolerance := map[Kind]int{PNG: 11, GIF: 3, Icon: 11}
	for _, kind := range Kinds() {
		if kind == Pixel || kind == Font {
			continue
		}
		for _, size := range []int{2_000, 9_999, 200_000} {
			made, _ := Make(kind, "http://a.test/x", size)
			if missing := size - len(made); missing < 0 || missing > tolerance[kind] {
				t.Errorf("%s: asked for %d bytes, got %d", kind, size, len(made))
			}
		}
	}
}

func TestUsualSizesStayWithinTheRecipe(t *testing.T) {
	for kind, recipe := range recipes {
		if kind == Pixel || kind == Font {
			continue
		}
		for i := range 40 {
			made, _ := Make(kind, fmt.Sprint("http://a.test/", i), 0)
			if len(made) < recipe.least-12 || len(made) > recipe.most {
				t.Errorf("%s: %d bytes, the recipe says %d to %d", kind, len(made), recipe.least, recipe.most)
			}
		}
	}
}

func TestAFontIsAFontAndJSONIsJSON(t *testing.T) {
	font, _ := Make(Font, "http://a.test/f.woff2", 0)
	if _, err := sfnt.Parse(font); err != nil {
		t.Error(err)
	}
	text, _ := Make(JSON, "http://a.test/x.json", 0)
	if !json.Valid(text) {
		t.Errorf("not JSON: %s", text)
	}
}

func TestAKindIsGuessedFromTheExtensionBeforeTheAcceptHeader(t *testing.T) {
	cases := []struct {
		path, accept string
		want         Kind
	}{
		{"/a.JPG", "text/css", JPEG},
		{"/a.webp", "", JPEG},
		{"/load.php", "text/css,*/*;q=0.1", CSS},
		{"/beacon", "image/avif,image/webp,*/*;q=0.8", Pixel},
		{"/frame", "text/html,application/xhtml+xml,image/avif", HTML},
		{"/tag", "*/*", Script},
	}
	for _, c := range cases {
		if got := KindOf(c.path, c.accept); got != c.want {
			t.Errorf("%s with Accept %q: %s, want %s", c.path, c.accept, got, c.want)
		}
	}
}

func TestAScriptOpensAndClosesItsScope(t *testing.T) {
	made, _ := Make(Script, "http://a.test/s.js", 5_000)
	text := string(made)
	if !strings.HasPrefix(text, "(function () {") || !strings.HasSuffix(text, "})();\n") {
		t.Errorf("not one closed scope: %.60s ... %s", text, text[len(text)-60:])
	}
	if strings.Count(text, "{") != strings.Count(text, "}") {
		t.Error("braces do not match")
	}
}

func TestSmallGIFsAreAsSmallAsAsked(t *testing.T) {
	for _, size := range []int{150, 300, 600, 1500} {
		made, _ := Make(GIF, "http://www.example.org/bullet.gif", size)
		if len(made) > size+1 || len(made) < size-3 {
			t.Errorf("%d bytes asked for, %d made", size, len(made))
		}
	}
}
