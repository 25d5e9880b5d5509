// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestMemoryIsBounded(t *testing.T) {
	m := newMemory()
	for i := range 3 * most {
		q := question{token: fmt.Sprint(i)}
		if _, mine := m.find(q); !mine {
			t.Fatalf("%d is remembered and was never asked", i)
		}
		m.keep(q, answer{status: http.StatusOK}, time.Hour)
	}
	if len(m.answers) > most {
		t.Errorf("%d answers are kept", len(m.answers))
	}
}
