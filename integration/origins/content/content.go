// Package content makes the objects of web pages: valid files of usual sizes, with the same bytes for the same URL in
// every run. They are valid because a browser cancels an image whose first bytes do not decode, and a page of junk
// would look fast. They have usual sizes because these dominate load times over a slow link.
package content

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// Kind is the kind of an object, by its use.
type Kind string

// All kinds.
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

// recipe says how to make a kind, and how large it usually is. Sizes are drawn evenly on a logarithmic scale between
// least and most bytes. That is the shape that crawls of the public web report.
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

// byExtension maps file extensions to kinds. A .webp or .avif name gets JPEG, as from image servers for clients without
// those decoders, because the standard library has no encoder for either. Fonts are TrueType under any name: browsers
// look inside.
var byExtension = map[string]Kind{
	".jpg": JPEG, ".jpeg": JPEG, ".webp": JPEG, ".avif": JPEG, ".png": PNG, ".gif": GIF, ".svg": SVG, ".ico": Icon,
	".css": CSS, ".js": Script, ".mjs": Script, ".html": HTML, ".htm": HTML, ".json": JSON,
	".ttf": Font, ".otf": Font, ".woff": Font, ".woff2": Font,
}

// Known returns true if this package makes the kind.
func (k Kind) Known() bool {
	_, ok := recipes[k]
	return ok
}

// Kinds returns every kind, sorted.
func Kinds() []Kind {
	var kinds []Kind
	for kind := range recipes {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// KindOf guesses a kind from a URL's path and the Accept field of the request for it.
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

// Make builds the object of a URL and returns its content type. bytes is the wanted size; 0 draws one. Not every kind
// can have every size: fonts and pixels have one, and an image has a least one. PNG, GIF and icons may be up to 11
// bytes short.
func Make(kind Kind, url string, bytes int) (made []byte, contentType string) {
	recipe := recipes[kind]
	random := rand.New(rand.NewPCG(Seed(url), 0))
	if bytes == 0 && recipe.most > 0 {
		bytes = int(float64(recipe.least) * math.Pow(float64(recipe.most)/float64(recipe.least), random.Float64()))
	}
	return recipe.build(random, bytes), recipe.contentType
}

// Seed returns a stable hash of a string.
func Seed(text string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text))
	return hash.Sum64()
}
