// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The worked numbers of digest §4.7.
func TestWebsterWorkedNumbers(t *testing.T) {
	for _, tt := range []struct {
		weights []int64
		seats   int64
		want    []int64
	}{
		{[]int64{1, 1}, 3, []int64{2, 1}},
		{[]int64{1, 1, 1}, 5, []int64{2, 2, 1}},
		{[]int64{3, 2, 1}, 12, []int64{6, 4, 2}},
		{[]int64{3, 2, 1}, 13, []int64{7, 4, 2}},
		{[]int64{3, 2, 1}, 14, []int64{7, 5, 2}},
		{[]int64{2, 1, 1, 1}, 6, []int64{3, 1, 1, 1}},
		{[]int64{2, 1, 1, 1}, 7, []int64{3, 2, 1, 1}},
		{[]int64{2, 1, 1, 1}, 8, []int64{3, 2, 2, 1}},
		{[]int64{2, 1, 1, 1}, 9, []int64{3, 2, 2, 2}},
		{[]int64{1, 1, 1, 1}, 5, []int64{2, 1, 1, 1}},
		{[]int64{1, 2}, 9, []int64{3, 6}},
		{[]int64{1, 3}, 9, []int64{2, 7}},
		{[]int64{1, 2}, 10, []int64{3, 7}},
		{[]int64{1, 9}, 3, []int64{0, 3}},
		{[]int64{1, 1, 1}, 10, []int64{4, 3, 3}},
		{[]int64{1, 1, 1}, 11, []int64{4, 4, 3}},
		{[]int64{1, 1, 1}, 1, []int64{1, 0, 0}},
		{[]int64{2, 1, 2, 1}, 15, []int64{5, 3, 5, 2}},
		{[]int64{1, 1}, 1 << 31, []int64{1 << 30, 1 << 30}},
		{nil, 3, nil},
	} {
		t.Run(fmt.Sprint(tt.weights, " ", tt.seats), func(t *testing.T) {
			got := make([]int64, len(tt.weights))
			for _, s := range Webster(named(tt.weights), tt.seats) {
				got[s.Name[0]-'a'] = s.Count
			}
			if !slices.Equal(got, tt.want) && len(tt.want) > 0 {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// Dealing ahead gives the same result as dealing one by one, and assigns all
// seats.
func TestWebsterEqualsOneSeatAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := named(rapid.SliceOfN(rapid.Int64Range(0, 40), 1, 12).Draw(t, "weights"))
		seats := rapid.Int64Range(0, 500).Draw(t, "seats")
		got := Webster(weights, seats)
		if want := oneByOne(weights, seats); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}

		slices.Reverse(weights)
		if again := Webster(weights, seats); !slices.Equal(got, again) {
			t.Fatalf("the order of the input matters: %v, %v", got, again)
		}
	})
}

func oneByOne(weights []Share, seats int64) []Share {
	counts := make([]int64, len(weights))
	for range seats {
		best := -1
		for i, w := range weights {
			if w.Count == 0 {
				continue
			}

			if best < 0 {
				best = i
				continue
			}

			a, b := w.Count*(2*counts[best]+1), weights[best].Count*(2*counts[i]+1)
			if a > b || a == b && counts[i] < counts[best] {
				best = i
			}
		}

		if best < 0 {
			return nil
		}

		counts[best]++
	}

	var shares []Share
	for i, n := range counts {
		if n > 0 {
			shares = append(shares, Share{weights[i].Name, n})
		}
	}

	return shares
}

func named(counts []int64) []Share {
	var shares []Share
	for i, n := range counts {
		shares = append(shares, Share{string(rune('a' + i)), n})
	}
	return shares
}
