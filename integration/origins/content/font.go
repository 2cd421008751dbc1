package content

import (
	"math/rand/v2"

	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
)

// buildFont returns one of three real fonts, because the browser's font sanitiser would refuse an invented one.
func buildFont(random *rand.Rand, _ int) []byte {
	fonts := [][]byte{goregular.TTF, gobold.TTF, gomono.TTF}
	return fonts[random.IntN(len(fonts))]
}
