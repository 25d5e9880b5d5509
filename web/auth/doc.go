// SPDX-License-Identifier: Apache-2.0

// Package auth lets those see the page of a Fleet whom Kubernetes lets: the bearer
// token of a request is checked by a TokenReview, and its user by a
// SubjectAccessReview for get of fleets/page in the group fairlead.dev.
//
//	guard := auth.New(auth.Options{
//		Tokens: clientset.AuthenticationV1().TokenReviews(),
//		Access: clientset.AuthorizationV1().SubjectAccessReviews(),
//	})
//	mux.Handle("/fleets/shop/web/", guard.Handler("shop", "web", page))
//
// Whoever runs it has to be allowed to create both, as the ClusterRole
// system:auth-delegator allows. A request without a good token is 401, a user who may
// not is 403, and nobody gets in while Kubernetes does not answer: 503. Answers are
// remembered for a short time by a keyed hash of the token. The token itself is never
// kept, written or passed on.
package auth
