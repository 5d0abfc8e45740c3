//go:build unix

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Indexes of the figures of a sample.
const (
	memory = iota
	descriptors
	routines
	disk
	figures
)

var names = [figures]string{"RSS in MB", "descriptors", "goroutines", "disk in MB"}

// Bounds of the growth from the second third to the last: a share of the former, and an
// amount below which nothing is growth.
var bounds = [figures]struct{ share, amount float64 }{
	memory:      {0.15, 10},
	descriptors: {0.15, 20},
	routines:    {0.15, 30},
	disk:        {0.20, 10},
}

type sample struct {
	at      time.Duration
	figures [figures]float64
}

func (s sample) row(l *load) string {
	return fmt.Sprintf("| %s | %.1f | %.0f | %.0f | %.1f | %s |", s.at.Round(time.Second), s.figures[memory], s.figures[descriptors], s.figures[routines], s.figures[disk], l.row())
}

// verdict prints the medians and returns what is wrong.
func verdict(all []sample, l *load, dir string) error {
	if len(all) < 9 {
		return fmt.Errorf("%d samples are too few: run longer", len(all))
	}
	second, last := all[len(all)/3:len(all)*2/3], all[len(all)*2/3:]
	var wrong []string
	fmt.Println("\n| median of | second third | last third |\n|---|---|---|")
	for i, name := range names {
		before, after := median(second, i), median(last, i)
		fmt.Printf("| %s | %.1f | %.1f |\n", name, before, after)
		if more := after - before; more > max(bounds[i].share*before, bounds[i].amount) {
			wrong = append(wrong, fmt.Sprintf("%s grew from %.1f to %.1f", name, before, after))
		}
	}
	wrong = append(wrong, l.failures()...)
	if wrong != nil {
		return errors.New(strings.Join(wrong, "; ") + "; data and log are in " + dir)
	}
	fmt.Println("\nNo call failed, and nothing grew.")
	return nil
}

func median(all []sample, i int) float64 {
	v := make([]float64, len(all))
	for j, s := range all {
		v[j] = s.figures[i]
	}
	slices.Sort(v)
	return v[len(v)/2]
}
