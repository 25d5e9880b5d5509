// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// What a Fleet refers to may change while it is resolved, when it is followed already and
// when it is not yet. Then it is resolved again.
func TestChangedWhileResolved(t *testing.T) {
	name := types.NamespacedName{Namespace: "team", Name: "acme"}
	f := &v1alpha1.Fleet{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Generation: 1}}
	for what, change := range map[string]func(*followers){
		"its GitRepository": func(fs *followers) { fs.sourceChanged(name) },
		"its Secret":        func(fs *followers) { fs.secretChanged(name.Namespace, "git") },
	} {
		fs := newFollowers(Options{StoragePath: t.TempDir(), Concurrent: 1}, fake.NewClientBuilder().Build())
		fs.ended = true // what is followed here does not run
		for _, when := range []string{"not followed yet", "followed"} {
			v := fs.version(f)
			own := fs.secretsOf(name)
			if _, err := own.find(context.Background(), "git"); err != nil {
				t.Fatal(err)
			}
			change(fs)
			fs.ensure(name, settings{}, own, v)
			if fs.upToDate(name, fs.version(f)) != nil {
				t.Errorf("%s: %s changed while it was resolved, and it is up to date", when, what)
			}

			v = fs.version(f)
			fs.ensure(name, settings{}, own, v)
			if fs.upToDate(name, fs.version(f)) == nil {
				t.Errorf("%s: nothing of %s has changed, and it is not up to date", when, what)
			}
		}
	}
}
