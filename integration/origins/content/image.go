package content

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
)

// encoder writes an image in one format. fill adds bytes to a finished file, in a place that the format has for
// comments.
type encoder struct {
	encode func(out *bytes.Buffer, picture image.Image) error
	fill   func(file []byte, extra int, random *rand.Rand) []byte
	// bitsPerPixel gives the first guess of the image's dimensions.
	bitsPerPixel float64
	// grain is the width of the noise in each colour, of 256.
	grain float64
}

var (
	// As WebP of quality 75, these images have 0.41 (60 KB) to 0.53 (3 KB) of their bytes. JPEG images of the web have
	// 0.39 to 0.60.
	jpegEncoder = encoder{
		encode:       func(out *bytes.Buffer, p image.Image) error { return jpeg.Encode(out, p, &jpeg.Options{Quality: 60}) },
		fill:         fillJPEG,
		bitsPerPixel: 1.6,
		grain:        28,
	}
	pngEncoder = encoder{encode: func(out *bytes.Buffer, p image.Image) error { return png.Encode(out, p) }, fill: fillPNG, bitsPerPixel: 14, grain: 18}
	gifEncoder = encoder{
		encode: func(out *bytes.Buffer, p image.Image) error {
			return gif.Encode(out, p, &gif.Options{NumColors: gifColours(p.Bounds())})
		},
		fill:         fillGIF,
		bitsPerPixel: 7,
		grain:        18,
	}
)

// gifColours returns the size of the palette. A full palette alone takes 768 bytes, and most small GIFs of web pages
// are bullets and rules of few colours.
func gifColours(bounds image.Rectangle) int {
	const small, few, many = 1200, 4, 256
	if bounds.Dx()*bounds.Dy() < small {
		return few
	}
	return many
}

func buildJPEG(random *rand.Rand, size int) []byte {
	return buildImage(jpegEncoder, random, size, 4.0/3)
}
func buildPNG(random *rand.Rand, size int) []byte { return buildImage(pngEncoder, random, size, 4.0/3) }
func buildGIF(random *rand.Rand, size int) []byte { return buildImage(gifEncoder, random, size, 2) }

// buildPixel returns a transparent GIF of one pixel.
func buildPixel(*rand.Rand, int) []byte {
	var out bytes.Buffer
	pixel := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.Transparent})
	if err := gif.Encode(&out, pixel, nil); err != nil {
		panic(err) // writing to memory
	}
	return out.Bytes()
}

// buildIcon returns an ICO file that holds one PNG (readers from 2007 on accept it).
func buildIcon(random *rand.Rand, size int) []byte {
	const headerBytes = 22
	inner := buildImage(pngEncoder, random, max(size-headerBytes, 0), 1)
	edge := binary.BigEndian.Uint32(inner[16:20])
	header := []byte{0, 0, 1, 0, 1, 0, byte(edge), byte(edge), 0, 0, 1, 0, 32, 0}
	header = binary.LittleEndian.AppendUint32(header, uint32(len(inner)))
	header = binary.LittleEndian.AppendUint32(header, headerBytes)
	return append(header, inner...)
}

// buildImage finds the largest image that fits into size bytes, and fills up the rest.
func buildImage(e encoder, random *rand.Rand, size int, aspect float64) []byte {
	pixels := float64(size) * 8 / e.bitsPerPixel
	look := [4]uint64{random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()}
	for {
		height := max(1, int(math.Sqrt(pixels/aspect)))
		width := max(1, int(float64(height)*aspect))
		var out bytes.Buffer
		if err := e.encode(&out, picture(look, width, height, e.grain)); err != nil {
			panic(err) // writing to memory
		}
		extra := size - out.Len()
		if extra >= 0 {
			return e.fill(out.Bytes(), extra, random)
		}
		if pixels < 1 {
			return out.Bytes()
		}
		pixels *= min(0.9, float64(size)/float64(out.Len()))
	}
}

// picture draws a gradient with a disc and some grain. The grain gives it the entropy of a small photograph. The rest
// lets a person tell images on a screenshot apart.
func picture(look [4]uint64, width, height int, amplitude float64) image.Image {
	grain := rand.New(rand.NewPCG(look[0], look[1]))
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	from, to := hue(look[2]), hue(look[3])
	for y := range height {
		for x := range width {
			along := (float64(x)/float64(width) + float64(y)/float64(height)) / 2
			dx, dy := float64(x)/float64(width)-0.5, float64(y)/float64(height)-0.5
			if dx*dx+dy*dy < 0.08 {
				along = 1 - along
			}
			noise := (grain.Float64() - 0.5) * amplitude
			out.SetNRGBA(x, y, color.NRGBA{
				mix(from.R, to.R, along, noise), mix(from.G, to.G, along, noise), mix(from.B, to.B, along, noise), 255,
			})
		}
	}
	return out
}

func hue(seed uint64) color.NRGBA {
	return color.NRGBA{R: byte(40 + seed%176), G: byte(40 + seed>>8%176), B: byte(40 + seed>>16%176), A: 255}
}

func mix(from, to byte, along, noise float64) byte {
	return byte(max(0, min(255, float64(from)*(1-along)+float64(to)*along+noise)))
}

func randomBytes(random *rand.Rand, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(random.Uint32())
	}
	return out
}

// fillJPEG adds COM segments (ITU-T T.81, B.2.4.5) behind the start marker. Fewer than four bytes become fill bytes.
func fillJPEG(file []byte, extra int, random *rand.Rand) []byte {
	const markerAndLength, largestPayload = 4, 65533
	out := append([]byte{}, file[:2]...)
	for extra >= markerAndLength {
		payload := min(extra-markerAndLength, largestPayload)
		if rest := extra - markerAndLength - payload; rest > 0 && rest < markerAndLength {
			payload -= markerAndLength
		}
		out = append(out, 0xff, 0xfe)
		out = binary.BigEndian.AppendUint16(out, uint16(payload+2))
		out = append(out, randomBytes(random, payload)...)
		extra -= markerAndLength + payload
	}
	// Fill bytes may stand before any marker (B.1.1.2).
	out = append(out, bytes.Repeat([]byte{0xff}, extra)...)
	return append(out, file[2:]...)
}

// fillPNG adds a private ancillary chunk, which decoders skip, before IEND. It cannot add fewer than twelve bytes.
func fillPNG(file []byte, extra int, random *rand.Rand) []byte {
	const frameBytes, endBytes = 12, 12
	if extra < frameBytes {
		return file
	}
	chunk := append([]byte("fiLl"), randomBytes(random, extra-frameBytes)...)
	end := len(file) - endBytes
	out := append([]byte{}, file[:end]...)
	out = binary.BigEndian.AppendUint32(out, uint32(extra-frameBytes))
	out = append(out, chunk...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
	return append(out, file[end:]...)
}

// fillGIF adds a comment extension before the trailer. It cannot add fewer than three bytes.
func fillGIF(file []byte, extra int, random *rand.Rand) []byte {
	const frameBytes, largestBlock = 3, 255
	if extra < frameBytes {
		return file
	}
	out := append([]byte{}, file[:len(file)-1]...)
	out = append(out, 0x21, 0xfe)
	for left := extra - frameBytes; left > 0; {
		block := min(left-1, largestBlock)
		if block == 0 {
			break // an empty block would end the comment: one byte stays missing
		}
		out = append(out, byte(block))
		out = append(out, randomBytes(random, block)...)
		left -= block + 1
	}
	return append(out, 0, 0x3b)
}
