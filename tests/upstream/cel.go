package main

import (
	"context"
	"time"

	celgo "github.com/google/cel-go/cel"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
)

type celQuestion struct {
	callLimit
	Expr      string              `json:"expr"`
	Driver    string              `json:"driver"`
	Devices   []resourcev1.Device `json:"devices"`
	Stored    bool                `json:"stored"`
	Lists     bool                `json:"lists"`
	Exclusive bool                `json:"exclusive"`
	// Derived makes it the expression of a derived attribute.
	Derived bool `json:"derived"`
}

type celAnswer struct {
	// MaxCost is the static estimate; the largest uint64 if there is none.
	MaxCost      uint64 `json:"maxCost"`
	CompileError string `json:"compileError,omitempty"`
	// Verdicts are true, false or the text of an error, one a device. For a derived attribute: the attribute.
	Verdicts []any `json:"verdicts,omitzero"`
	// Costs are null where evaluation did not begin.
	Costs []*uint64 `json:"costs,omitzero"`
	Us    *float64  `json:"us,omitempty"`
}

type compiler interface {
	CompileCELExpression(expression string, options cel.Options) cel.CompilationResult
}

// compilers are kept, since upstream keeps only the latest and takes milliseconds to make one.
var compilers = map[cel.Features]compiler{}

func compilerFor(features cel.Features) compiler {
	if compilers[features] == nil {
		compilers[features] = cel.GetCompiler(features)
	}
	return compilers[features]
}

func evaluate(question celQuestion) celAnswer {
	envType := environment.NewExpressions
	if question.Stored {
		envType = environment.StoredExpressions
	}
	features := cel.Features{EnableConsumableCapacity: !question.Exclusive, EnableListTypeAttributes: question.Lists}
	options := cel.Options{EnvType: &envType, DerivedAttribute: question.Derived}
	compiled := compilerFor(features).CompileCELExpression(question.Expr, options)
	answer := celAnswer{MaxCost: compiled.MaxCost}
	if compiled.Error != nil {
		answer.CompileError = compiled.Error.Error()
		return answer
	}
	ctx, cancel := context.WithTimeout(context.Background(), question.timeout())
	defer cancel()
	answer.Verdicts = make([]any, len(question.Devices))
	answer.Costs = make([]*uint64, len(question.Devices))
	var took time.Duration
	for i, device := range question.Devices {
		input := cel.Device{
			Driver:                   question.Driver,
			AllowMultipleAllocations: device.AllowMultipleAllocations,
			Attributes:               device.Attributes,
			Capacity:                 device.Capacity,
		}
		started := time.Now()
		verdict, details, err := call(ctx, compiled, question.Derived, input)
		took += time.Since(started)
		answer.Verdicts[i] = verdict
		if err != nil {
			answer.Verdicts[i] = err.Error()
		}
		if details != nil {
			answer.Costs[i] = details.ActualCost()
		}
	}
	us := microseconds(took)
	answer.Us = &us
	return answer
}

func call(ctx context.Context, compiled cel.CompilationResult, derived bool, device cel.Device) (any, *celgo.EvalDetails, error) {
	if derived {
		return compiled.EvaluateDerivedAttribute(ctx, device)
	}
	return compiled.DeviceMatches(ctx, device)
}
