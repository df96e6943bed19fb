package main

import (
	"context"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type textQuestion struct {
	Text string `json:"text"`
}

type quantityAnswer struct {
	Canonical string `json:"canonical"`
	Value     int64  `json:"value"`
	Milli     int64  `json:"milli"`
	// Int is the value as int64 if Exact, else 0.
	Int   int64 `json:"int"`
	Exact bool  `json:"exact"`
	Sign  int   `json:"sign"`
}

func readQuantity(question textQuestion) any {
	quantity, err := resource.ParseQuantity(question.Text)
	if err != nil {
		return errorAnswer(err)
	}
	answer := quantityAnswer{Value: quantity.Value(), Milli: quantity.MilliValue(), Sign: quantity.Sign()}
	if whole, exact := quantity.AsInt64(); exact {
		answer.Int, answer.Exact = whole, true
	}
	// String would repeat some texts as they were given. Last, since it may change how the value is kept.
	number, suffix := quantity.CanonicalizeBytes(nil)
	answer.Canonical = string(number) + string(suffix)
	return answer
}

type semverQuestion struct {
	textQuestion
	// Other is a version to compare with.
	Other *string `json:"other"`
}

type semverAnswer struct {
	Canonical  string   `json:"canonical"`
	Major      uint64   `json:"major"`
	Minor      uint64   `json:"minor"`
	Patch      uint64   `json:"patch"`
	Prerelease []string `json:"prerelease"`
	Build      []string `json:"build"`
	Compare    *int     `json:"compare,omitempty"`
}

func readSemver(question semverQuestion) any {
	version, err := semver.Parse(question.Text)
	if err != nil {
		return errorAnswer(err)
	}
	answer := semverAnswer{
		Canonical:  version.String(),
		Major:      version.Major,
		Minor:      version.Minor,
		Patch:      version.Patch,
		Prerelease: []string{},
		Build:      append([]string{}, version.Build...),
	}
	for _, part := range version.Pre {
		answer.Prerelease = append(answer.Prerelease, part.String())
	}
	if question.Other != nil {
		other, err := semver.Parse(*question.Other)
		if err != nil {
			return errorAnswer(err)
		}
		compare := version.Compare(other)
		answer.Compare = &compare
	}
	return answer
}

// nameAnswer tells of each form of names whether the text has it.
type nameAnswer struct {
	DNSLabel             bool `json:"dnsLabel"`
	DNSSubdomain         bool `json:"dnsSubdomain"`
	LabelKey             bool `json:"labelKey"`
	LabelValue           bool `json:"labelValue"`
	PoolName             bool `json:"poolName"`
	FullyQualifiedName   bool `json:"fullyQualifiedName"`
	ExtendedResourceName bool `json:"extendedResourceName"`
}

type validator func(context.Context, operation.Operation, *field.Path, *string, *string) field.ErrorList

func checkName(question textQuestion) nameAnswer {
	passes := func(validator validator) bool {
		return len(validator(context.Background(), operation.Operation{}, nil, &question.Text, nil)) == 0
	}
	return nameAnswer{
		DNSLabel:             passes(validate.ShortName[string]),
		DNSSubdomain:         passes(validate.LongName[string]),
		LabelKey:             passes(validate.LabelKey[string]),
		LabelValue:           passes(validate.LabelValue[string]),
		PoolName:             passes(validate.ResourcePoolName[string]),
		FullyQualifiedName:   passes(validate.ResourceFullyQualifiedName[string]),
		ExtendedResourceName: passes(validate.ExtendedResourceName[string]),
	}
}

func errorAnswer(err error) any {
	return map[string]string{"error": err.Error()}
}
