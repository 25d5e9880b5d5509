// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"testing"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/dryrun"
	"github.com/fairlead/fairlead/dispatch/member/membertest"
)

// through lets everything show through.
type through struct{ member.Member }

func (t through) Unwrap() member.Member { return t.Member }

// opaque is around a member, and is no Wrapper.
type opaque struct{ member.Member }

// refusing sets a capability that it does not offer.
type refusing struct{ through }

func (r refusing) Override(target any) (offered, handled bool) {
	o, ok := target.(*member.Observer)
	if ok {
		*o = &membertest.Capable{}
	}
	return false, ok
}

func TestAs(t *testing.T) {
	type seen struct{ Observer, Batch, ReadOnly bool }
	capable := &membertest.Capable{}

	for _, test := range []struct {
		name string
		m    member.Member
		want seen
	}{
		{"no member", nil, seen{}},
		{"one without capabilities", &membertest.Bare{}, seen{}},
		{"one with some", capable, seen{Observer: true, Batch: true}},
		{"a wrapper", through{capable}, seen{Observer: true, Batch: true}},
		{"a wrapper of a wrapper", through{through{capable}}, seen{Observer: true, Batch: true}},
		{"a wrapper of none", through{nil}, seen{}},
		{"what does not unwrap hides everything", opaque{capable}, seen{}},
		{"a wrapper may hide", dryrun.Wrap(capable), seen{Observer: true, ReadOnly: true}},
		{"from whoever wraps it", through{dryrun.Wrap(capable)}, seen{Observer: true, ReadOnly: true}},
		{"whatever it has set", refusing{through{capable}}, seen{Batch: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			observer, observes := member.As[member.Observer](test.m)
			got := seen{observes, member.Is[member.BatchMember](test.m), member.Is[member.ReadOnly](test.m)}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if (observer != nil) != observes {
				t.Errorf("the observer is %v", observer)
			}
		})
	}
}
