// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"

	"github.com/google/go-github/v89/github"
)

// annotationsACall is GitHub's limit.
const annotationsACall = 50

// Check implements Checker. Each call adds annotations to those of the ones before.
func (g *gitHub) Check(ctx context.Context, c Check) error {
	there, _, err := g.client.Checks.ListCheckRunsForRef(ctx, g.owner, g.name, c.Commit, &github.ListCheckRunsOptions{CheckName: &c.Name})
	if err != nil {
		return err
	}
	for _, run := range there.CheckRuns {
		if run.GetExternalID() == c.Key && run.GetStatus() == "completed" {
			return nil
		}
	}

	first, rest := batch(c.Annotations)
	run, _, err := g.client.Checks.CreateCheckRun(ctx, g.owner, g.name, github.CreateCheckRunOptions{
		Name: c.Name, HeadSHA: c.Commit, ExternalID: &c.Key, Status: github.Ptr("in_progress"), Output: c.output(first),
	})
	if err != nil {
		return err
	}
	for len(rest) > 0 {
		first, rest = batch(rest)
		if err := g.update(ctx, run.GetID(), github.UpdateCheckRunOptions{Name: c.Name, Output: c.output(first)}); err != nil {
			return err
		}
	}
	return g.update(ctx, run.GetID(), github.UpdateCheckRunOptions{Name: c.Name, Status: github.Ptr("completed"), Conclusion: github.Ptr(string(c.State))})
}

func (g *gitHub) update(ctx context.Context, run int64, o github.UpdateCheckRunOptions) error {
	_, _, err := g.client.Checks.UpdateCheckRun(ctx, g.owner, g.name, run, o)
	return err
}

func batch(all []Annotation) (first, rest []Annotation) {
	n := min(len(all), annotationsACall)
	return all[:n], all[n:]
}

func (c Check) output(some []Annotation) *github.CheckRunOutput {
	out := &github.CheckRunOutput{Title: &c.Title, Summary: &c.Summary}
	for _, a := range some {
		out.Annotations = append(out.Annotations, &github.CheckRunAnnotation{
			Path: &a.Path, StartLine: &a.Line, EndLine: &a.Line, AnnotationLevel: &a.Level, Title: &a.Title, Message: &a.Message,
		})
	}
	return out
}
