// SPDX-License-Identifier: Apache-2.0

package member

// Wrapper is a Member around another one. The capabilities of the inner one
// show through it.
type Wrapper interface {
	Member
	// Unwrap is the Member inside.
	Unwrap() Member
}

// Overrider is a Wrapper that changes or hides a capability of the Member inside.
type Overrider interface {
	Wrapper
	// Override is given a pointer to a variable of a capability's type. It sets the
	// variable and reports true twice, or hides the capability and reports that it
	// is not offered, whatever it has set; one that is not handled shows through.
	Override(target any) (offered, handled bool)
}

// As finds a capability of m, or of what m wraps, as errors.As finds an error.
func As[T any](m Member) (T, bool) {
	var none T
	for m != nil {
		if c, ok := m.(T); ok {
			return c, true
		}
		if o, ok := m.(Overrider); ok {
			var c T
			switch offered, handled := o.Override(&c); {
			case offered && handled:
				return c, true
			case handled:
				return none, false
			}
		}
		w, ok := m.(Wrapper)
		if !ok {
			break
		}
		m = w.Unwrap()
	}
	return none, false
}

// Is reports whether m, or what m wraps, has a capability.
func Is[T any](m Member) bool {
	_, ok := As[T](m)
	return ok
}
