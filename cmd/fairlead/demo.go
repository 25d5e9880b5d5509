// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
)

func newDemo() *cobra.Command {
	d := &demo{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Demonstrate a release, a hold and a promotion on clusters in this process",
		Long: `Creates a fleet repository, starts three members inside this process, runs the
loop, pushes four commits and shows after each what every member runs:
a first release, a release that all clusters but one hold, a promotion of
some of them, and the removal of the application with its copies left running.

With --clusters there are more members, in three regions, each of which is a wave
to promote; --keep leaves such a fleet to try out. With --members real the members are Kubernetes API servers, each with an etcd.
'make kube' builds them; the demo finds them from within the checkout, or through
KUBEBUILDER_ASSETS.`,
		Example: `  fairlead demo
  fairlead demo --clusters 40 --keep`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.clusters < exampleClusters {
				return usagef("--clusters %d must be %d or more", d.clusters, exampleClusters)
			}
			d.out = cmd.OutOrStdout()
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&d.keep, "keep", false, "keep it running, with a repository to push to and a kubeconfig for kubectl")
	cmd.Flags().IntVar(&d.clusters, "clusters", exampleClusters, "how many members there are")
	cmd.Flags().StringVar(&d.kind, "members", "embedded", "embedded, or real: the API servers that 'make kube' builds")
	return cmd
}

type demo struct {
	keep     bool
	clusters int
	kind     string
	out      io.Writer

	dir     string
	fleet   demoFleet
	repo    *source.Repo
	loop    *reconcile.Loop
	members map[string]*demoMember
	clock   time.Time
}

// chapter is a commit of the demo, and what there is to see in it.
type chapter struct {
	message string
	say     string
	files   map[string][]byte
}

const webPolicy = "policies/web.yaml"

// chapters are the commits of the demo, oldest first.
func (f demoFleet) chapters() []chapter {
	first := chapter{"shop: the first release of web 1.0", "Three clusters, one application: twelve replicas, shared 2:1:1.", f.files()}
	others, others2, waits := "us-1 and ap-1", "us-1", "ap-1 still runs 1.0"
	promoted := []string{"us-1"}
	if n := len(f.clusters); n > exampleClusters {
		first.say = fmt.Sprintf("%d clusters, one application: %d replicas; each cluster in Europe has twice as many as one elsewhere.", n, f.replicas())
		others, others2, waits = fmt.Sprintf("the %d others", n-1), "america", "Where it was held 1.0 still runs"
		promoted = f.in("us")
	}
	held := f.but(append(promoted, "eu-1")...)

	web2, promote := f.web2(f.but("eu-1")...), map[string][]byte{webPolicy: f.web2(held...)[webPolicy]}
	retire := map[string][]byte{webPolicy: append(slices.Clone(promote[webPolicy]), "  preserveResourcesOnDeletion: true\n"...)}
	for name := range f.files() {
		if strings.HasPrefix(name, "apps/web/") {
			retire[name] = nil
		}
	}

	return []chapter{
		first,
		{"shop: web 2.0, on eu-1 first", "A new image, and a suspension of " + others + " in the same commit: only eu-1 gets it.", web2},
		{"shop: promote " + others2, "A promotion is a commit that takes names off the list.", promote},
		{"shop: retire web, leave it running", "The templates go, the policy says preserve: every copy keeps running, without our marks. " + waits + ".", retire},
	}
}

func (d *demo) run(ctx context.Context) (err error) {
	d.fleet = newDemoFleet(d.clusters)
	if d.dir, err = os.MkdirTemp("", "fairlead-demo-"); err != nil {
		return err
	}

	if !d.keep {
		defer os.RemoveAll(d.dir)
	}
	defer d.stop()
	if err := d.start(ctx); err != nil {
		return err
	}

	for i, c := range d.fleet.chapters() {
		if err := d.tell(ctx, i+1, c); err != nil {
			return err
		}
	}

	if !d.keep {
		fmt.Fprintf(d.out, "\nThat was the demo. 'fairlead demo --keep' keeps it running for you to push to.\n")
		return nil
	}

	return d.wait(ctx)
}

// start makes the repository and the members, and opens the loop on them.
func (d *demo) start(ctx context.Context) (err error) {
	d.clock = time.Now()
	if d.repo, err = source.Init(d.repository(), "main"); err != nil {
		return err
	}
	if _, err := d.commit("begin", map[string][]byte{"README.md": []byte("# An empty fleet\n")}); err != nil {
		return err
	}
	if d.members, err = startMembers(d.kind, d.fleet.clusters); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // it takes a while until real ones are up
	}

	d.loop, err = reconcile.Open(ctx, reconcile.Options{
		Repo: d.repository(), Ref: "main", Path: ".", StateDir: filepath.Join(d.dir, "state"), Interval: time.Second,
		Members: func(c *fleet.Cluster) (member.Member, error) {
			m, ok := d.members[c.Name]
			if !ok {
				return nil, fmt.Errorf("the demo has no member %q", c.Name)
			}
			return push.New(m.config, push.Options{})
		},
		Report: func(e reconcile.Event) {
			if e.Severity == reconcile.Warning {
				fmt.Fprintf(d.out, "  %s\n", e)
			}
		},
	})

	return err
}

func (d *demo) repository() string { return filepath.Join(d.dir, "fleet.git") }

func (d *demo) stop() {
	if d.loop != nil {
		_ = d.loop.Close() // the process ends; what was not saved is found again
	}
	stopMembers(d.members)
}

func (d *demo) tell(ctx context.Context, n int, c chapter) error {
	hash, err := d.commit(c.message, c.files)
	if err != nil {
		return err
	}

	fmt.Fprintf(d.out, "\n%d. %s %s\n   %s\n\n", n, source.Short(hash), c.message, c.say)
	began := time.Now()
	if err := d.loop.Once(ctx); err != nil {
		return err
	}

	took := time.Since(began)
	if err := d.show(ctx); err != nil {
		return err
	}

	fmt.Fprintf(d.out, "   pushed and acknowledged in %s\n", took.Round(time.Millisecond))
	return nil
}

func (d *demo) commit(message string, files map[string][]byte) (string, error) {
	d.clock = d.clock.Add(time.Second)
	return d.repo.Apply(source.Edit{Branch: "main", Message: message + "\n", Author: "fairlead demo", Mail: "demo@fairlead.dev", When: d.clock, Files: files})
}

// shown are the objects that the demo reads from each member, one column each.
var shown = []struct {
	title    string
	resource schema.GroupVersionResource
	name     string
}{
	{"DEPLOYMENT web", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "web"},
	{"SERVICE web", schema.GroupVersionResource{Version: "v1", Resource: "services"}, "web"},
	{"CONFIGMAP web", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "web"},
	{"CONFIGMAP notice", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "notice"},
}

// show asks every member what it runs, as kubectl would. A cell is what runs, and the
// commit that brought it. Clusters that run the same share a line where there are many.
func (d *demo) show(ctx context.Context) error {
	lines := make([][]string, len(d.fleet.clusters))
	for i, name := range d.fleet.clusters {
		for _, s := range shown {
			objects, err := push.Live(ctx, d.members[name].config, s.resource, "shop")
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			lines[i] = append(lines[i], cell(objects, s.name))
		}
	}

	w := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "   CLUSTER")
	for _, s := range shown {
		fmt.Fprintf(w, "\t%s", s.title)
	}
	fmt.Fprintln(w)
	for _, group := range d.fleet.alike(lines) {
		fmt.Fprintf(w, "   %s\t%s\n", group.title, strings.Join(group.line, "\t"))
	}
	return w.Flush()
}

// cell reads "web:1.0 x6 by 0bdbd6c", or "left running" for what is not ours.
func cell(objects []map[string]any, name string) string {
	for _, live := range objects {
		o := &unstructured.Unstructured{Object: live}
		if o.GetName() != name {
			continue
		}
		by := "left running"
		if o.GetLabels()[object.LabelManaged] == "true" {
			by = "by " + source.Short(o.GetAnnotations()[object.AnnotationRevision])
		}
		containers, ok, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if !ok || len(containers) == 0 {
			return by
		}
		image, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image")
		replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		return fmt.Sprintf("%s x%d %s", image[strings.LastIndex(image, "/")+1:], replicas, by)
	}

	return "-"
}

// wait keeps the demo running for the user to try out.
func (d *demo) wait(ctx context.Context) error {
	kubeconfig := filepath.Join(d.dir, "members.yaml")
	if err := writeKubeconfig(kubeconfig, d.members); err != nil {
		return err
	}
	fmt.Fprintf(d.out, `
It runs until Ctrl-C; you can remove %[1]s then.

  git clone %[2]s fleet && cd fleet      # edit, commit, push: the members follow within a second
  %[4]s plan                 # what your commits would do, before you push them
  %[4]s status --kubeconfig %[3]s
  %[4]s serve --kubeconfig %[3]s    # the same as a page
  kubectl --kubeconfig %[3]s --context eu-1 get deploy,cm -n shop
`, d.dir, d.repository(), kubeconfig, invocation())
	return d.loop.Run(ctx)
}

// invocation is how a shell finds this program.
func invocation() string {
	if path, err := exec.LookPath("fairlead"); err == nil && path != "" {
		return "fairlead"
	}
	path, err := os.Executable()
	if err != nil {
		return "fairlead"
	}
	return path
}
