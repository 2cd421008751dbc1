package content

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// words fill the texts. Text of few words compresses about as well as real scripts and style sheets.
var words = strings.Fields(`harbour lantern compass anchor current tide rope deck mast sail rudder beacon buoy chart
	fathom gale hull jetty keel knot league mooring oar pilot quay reef shoal signal sounding stern swell vessel wake`)

func word(random *rand.Rand) string { return words[random.IntN(len(words))] }

// repeat appends lines to head as long as tail still fits into size bytes, then fills up with spaces.
func repeat(size int, head, tail string, line func(i int) string) []byte {
	var out strings.Builder
	out.WriteString(head)
	for i := 0; ; i++ {
		next := line(i)
		if out.Len()+len(next)+len(tail) > size {
			break
		}
		out.WriteString(next)
	}
	for out.Len()+len(tail) < size {
		out.WriteByte(' ')
	}
	out.WriteString(tail)
	return []byte(out.String())
}

// buildCSS styles only classes that no page uses, so a saved page keeps the look of its own markup.
func buildCSS(random *rand.Rand, size int) []byte {
	id := random.Uint32()
	return repeat(size, "@charset \"utf-8\";\n", "", func(i int) string {
		return fmt.Sprintf(".%s-%08x-%d > .%s { margin: %dpx %dpx; color: #%06x; border-radius: %d%% }\n",
			word(random), id, i, word(random), random.IntN(40), random.IntN(40), random.IntN(1<<24), random.IntN(50))
	})
}

// buildScript defines functions in their own scope and calls none.
func buildScript(random *rand.Rand, size int) []byte {
	return repeat(size, "(function () {\n  'use strict';\n", "})();\n", func(i int) string {
		return fmt.Sprintf("  function %s%s%d(%s, list) { return list.filter(function (item) { return item.%s > %d; }).concat(%s + %q); }\n",
			word(random), strings.ToUpper(word(random)), i, "left", word(random), random.IntN(10000), "left", word(random)+word(random))
	})
}

func buildHTML(random *rand.Rand, size int) []byte {
	head := "<!doctype html>\n<meta charset=utf-8>\n<title>" + word(random) + "</title>\n"
	return repeat(size, head, "", func(int) string {
		var text []string
		for range 24 {
			text = append(text, word(random))
		}
		return "<p>" + strings.Join(text, " ") + ".</p>\n"
	})
}

func buildJSON(random *rand.Rand, size int) []byte {
	return repeat(size, `{"items":[`, `null]}`, func(i int) string {
		return fmt.Sprintf(`{"id":%d,"name":%q,"score":%d},`, i, word(random), random.IntN(1000))
	})
}

func buildSVG(random *rand.Rand, size int) []byte {
	head := `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 150">` + "\n"
	return repeat(size, head, "</svg>\n", func(int) string {
		return fmt.Sprintf(`<circle cx="%d" cy="%d" r="%d" fill="#%06x" opacity=".6"/>`+"\n",
			random.IntN(200), random.IntN(150), 4+random.IntN(30), random.IntN(1<<24))
	})
}
