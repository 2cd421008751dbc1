// Package content makes the objects of web pages: valid files of usual sizes, the same bytes for the same URL in every
// run. Valid, because a browser cancels an image whose first bytes do not decode, and a page of junk then looks fast;
// usual sizes, because load times over a slow link are mostly sizes.
package content

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// Kind is what an object is used as.
type Kind string

// The kinds there are.
const (
	JPEG   Kind = "jpeg"
	PNG    Kind = "png"
	GIF    Kind = "gif"
	Pixel  Kind = "pixel" // the one-pixel GIF of counters and beacons
	SVG    Kind = "svg"
	Icon   Kind = "icon"
	CSS    Kind = "css"
	Script Kind = "script"
	HTML   Kind = "html"
	JSON   Kind = "json"
	Font   Kind = "font"
)

// recipe says how a kind is made and how large it usually is: sizes are drawn evenly on a logarithmic scale between
// least and most bytes, which is the shape of what crawls of the public web report.
type recipe struct {
	contentType string
	least, most int
	build       func(random *rand.Rand, bytes int) []byte
}

var recipes = map[Kind]recipe{
	JPEG:   {"image/jpeg", 4_000, 60_000, buildJPEG},
	PNG:    {"image/png", 1_500, 40_000, buildPNG},
	GIF:    {"image/gif", 600, 10_000, buildGIF},
	Pixel:  {"image/gif", 43, 43, buildPixel},
	SVG:    {"image/svg+xml", 600, 6_000, buildSVG},
	Icon:   {"image/x-icon", 1_000, 5_000, buildIcon},
	CSS:    {"text/css", 2_000, 50_000, buildCSS},
	Script: {"application/javascript", 2_500, 80_000, buildScript},
	HTML:   {"text/html; charset=utf-8", 1_500, 12_000, buildHTML},
	JSON:   {"application/json", 300, 4_000, buildJSON},
	Font:   {"font/ttf", 0, 0, buildFont},
}

// byExtension: a .webp or .avif name is answered with JPEG, as image servers do for clients without those decoders
// (the standard library has no encoder for either); fonts are TrueType whatever the name says, browsers look inside.
var byExtension = map[string]Kind{
	".jpg": JPEG, ".jpeg": JPEG, ".webp": JPEG, ".avif": JPEG, ".png": PNG, ".gif": GIF, ".svg": SVG, ".ico": Icon,
	".css": CSS, ".js": Script, ".mjs": Script, ".html": HTML, ".htm": HTML, ".json": JSON,
	".ttf": Font, ".otf": Font, ".woff": Font, ".woff2": Font,
}

// Known tells whether the kind is one of this package.
func (k Kind) Known() bool {
	_, ok := recipes[k]
	return ok
}

// Kinds lists every kind, sorted.
func Kinds() []Kind {
	var kinds []Kind
	for kind := range recipes {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// KindOf guesses a kind from a URL's path and the Accept header of the request for it.
func KindOf(urlPath, accept string) Kind {
	if kind, ok := byExtension[strings.ToLower(path.Ext(urlPath))]; ok {
		return kind
	}
	switch {
	case strings.Contains(accept, "text/html"):
		return HTML
	case strings.Contains(accept, "text/css"):
		return CSS
	case strings.Contains(accept, "image/"):
		return Pixel
	}
	return Script
}

// Make builds the object of a URL and tells its content type. bytes is the size wanted; 0 draws one. The result is
// exactly that long unless the kind cannot be (fonts and pixels have one size, an image a least one).
func Make(kind Kind, url string, bytes int) (made []byte, contentType string) {
	recipe := recipes[kind]
	random := rand.New(rand.NewPCG(Seed(url), 0))
	if bytes == 0 && recipe.most > 0 {
		bytes = int(float64(recipe.least) * math.Pow(float64(recipe.most)/float64(recipe.least), random.Float64()))
	}
	return recipe.build(random, bytes), recipe.contentType
}

// Seed is a stable hash of a string.
func Seed(text string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text))
	return hash.Sum64()
}
