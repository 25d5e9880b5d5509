// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// newLogger logs as Flux's controllers do, as json or for the console.
func newLogger(w io.Writer, encoding string, level zapcore.Level) logr.Logger {
	style := func(c *zapcore.EncoderConfig) {
		c.EncodeTime = zapcore.ISO8601TimeEncoder
		c.EncodeLevel = zapcore.LowercaseLevelEncoder
		if encoding == "console" {
			c.EncodeLevel = zapcore.CapitalLevelEncoder
		}
	}
	encoder := zap.JSONEncoder(style)
	if encoding == "console" {
		encoder = zap.ConsoleEncoder(style)
	}
	return zap.New(zap.WriteTo(w), encoder, zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel))
}

// logLevels are those of Flux's controllers.
var logLevels = map[string]zapcore.Level{"trace": zapcore.DebugLevel - 1, "debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "error": zapcore.ErrorLevel}
