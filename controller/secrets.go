// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secrets reads the Secrets of one namespace, and remembers which were asked for: a
// change of one of these, or that it is there at last, is news to its Fleet. They are
// read from the API server each time and kept nowhere.
type secrets struct {
	client    client.Reader
	namespace string

	mu    sync.Mutex
	asked map[string]bool
}

func newSecrets(c client.Reader, namespace string) *secrets {
	return &secrets{client: c, namespace: namespace, asked: map[string]bool{}}
}

// SecretError is why a Secret cannot be used.
type SecretError struct{ Err error }

func (e *SecretError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SecretError) Unwrap() error { return e.Err }

// read returns the data of a Secret.
func (s *secrets) read(ctx context.Context, name string) (map[string][]byte, error) {
	data, err := s.find(ctx, name)
	if err == nil && data == nil {
		err = s.failed(name, errors.New("not found"))
	}
	return data, err
}

// find returns the data of a Secret, nil if there is none.
func (s *secrets) find(ctx context.Context, name string) (map[string][]byte, error) {
	s.mu.Lock()
	s.asked[name] = true
	s.mu.Unlock()

	var secret corev1.Secret
	err := s.client.Get(ctx, s.key(name), &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, s.failed(name, err)
	case secret.Data == nil:
		return map[string][]byte{}, nil
	}

	return secret.Data, nil
}

func (s *secrets) failed(name string, err error) error {
	return &SecretError{fmt.Errorf("%s: %w", s.title(name), err)}
}

// title is what messages call a Secret.
func (s *secrets) title(name string) string { return "Secret " + s.key(name).String() }

func (s *secrets) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: name}
}

// uses reports whether a Secret was asked for.
func (s *secrets) uses(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}
