package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// makeNames returns count names to list, and at most as many that are neither listed nor below a listed name. It takes
// the real domain names first. It makes further names from labels of two real names and the suffix of a third, so
// lengths and suffixes stay those of real lists.
func makeNames(corpora string, count int) (listed, other []string, err error) {
	real, err := realNames(corpora)
	if err != nil {
		return nil, nil, err
	}
	if len(real) == 0 {
		fmt.Printf("No domain names in %s: all are invented\n", corpora)
		real = inventedNames()
	}
	random := rand.New(rand.NewPCG(20_001, 7))
	seen := make(map[string]struct{}, 2*count)
	all := make([]string, 0, 2*count)
	add := func(name string) {
		if _, known := seen[name]; !known && len(all) < cap(all) {
			seen[name] = struct{}{}
			all = append(all, name)
		}
	}
	for _, name := range real {
		add(name)
	}
	for len(all) < cap(all) {
		a, _, _ := strings.Cut(real[random.IntN(len(real))], ".")
		b, _, _ := strings.Cut(real[random.IntN(len(real))], ".")
		_, suffix, _ := strings.Cut(real[random.IntN(len(real))], ".")
		if label := a[:(len(a)+1)/2] + b[len(b)/2:]; label != "" && len(label) <= 63 {
			add(label + "." + suffix)
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	listed = all[:count]
	set := make(map[string]struct{}, count)
	for _, name := range listed {
		set[name] = struct{}{}
	}
	for _, name := range all[count:] {
		if !below(set, name) {
			other = append(other, name)
		}
	}
	return listed, other, nil
}

// below returns true if name or one of its parents is in set.
func below(set map[string]struct{}, name string) bool {
	for ok := true; ok; _, name, ok = strings.Cut(name, ".") {
		if _, found := set[name]; found {
			return true
		}
	}
	return false
}

// realNames reads names of two labels or more from lists. A list has one name per line, bare or after a keyword and a
// colon.
func realNames(folder string) (names []string, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inData := filepath.Base(filepath.Dir(path)) == "data"
		if !inData && !strings.HasSuffix(path, "-domains.txt") {
			return nil
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) == 0 {
				continue
			}
			if name := strings.TrimPrefix(strings.TrimPrefix(fields[0], "full:"), "domain:"); isName(name) {
				names = append(names, name)
			}
		}
		return lines.Err()
	})
	if os.IsNotExist(err) {
		return nil, nil
	}
	return names, err
}

func isName(text string) bool {
	return strings.Contains(text, ".") && !strings.HasPrefix(text, ".") && !strings.HasSuffix(text, ".") && len(text) < 200 &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == "" && strings.Trim(text, "0123456789.") != ""
}

func inventedNames() (names []string) {
	random := rand.New(rand.NewPCG(1, 1))
	suffixes := []string{"example", "example", "test", "invalid", "co.example", "net.example"}
	for range 20_000 {
		label := make([]byte, 5+random.IntN(14))
		for i := range label {
			label[i] = byte('a' + random.IntN(26))
		}
		names = append(names, string(label)+"."+suffixes[random.IntN(len(suffixes))])
	}
	return names
}
