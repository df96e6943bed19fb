//go:build replay

// Package replay puts upstream's own test cases to upstream's allocators and writes down what they were asked and what
// they answered, one JSON line each between the lines of `go test -v`.
//
// It is compiled inside a copy of upstream's module, since the cases are internal there.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured/internal"
	"k8s.io/dynamic-resource-allocation/structured/internal/allocatortesting"
	"k8s.io/dynamic-resource-allocation/structured/internal/experimental"
	"k8s.io/dynamic-resource-allocation/structured/internal/incubating"
	"k8s.io/dynamic-resource-allocation/structured/internal/stable"
)

// mark begins the lines that are ours.
const mark = "\n@replay "

type question struct {
	Node     *corev1.Node                `json:"node"`
	Classes  []*resourcev1.DeviceClass   `json:"classes"`
	Slices   []*resourcev1.ResourceSlice `json:"slices"`
	Claims   []*resourcev1.ResourceClaim `json:"claims"`
	Features internal.Features           `json:"features"`
	State    allocatedState              `json:"state"`
}

type allocatedState struct {
	Whole    [][3]string `json:"whole"`
	Shares   [][3]string `json:"shares"`
	Consumed []consumed  `json:"consumed"`
}

type consumed struct {
	Device   [3]string                           `json:"device"`
	Capacity map[resourcev1.QualifiedName]string `json:"capacity"`
}

type answer struct {
	Fit      bool                          `json:"fit"`
	Result   []resourcev1.AllocationResult `json:"result"`
	Error    string                        `json:"error,omitempty"`
	NodeOnly bool                          `json:"nodeOnly,omitempty"`
}

// record is a line. A lossy one does not tell what was asked: upstream writes the quantity 1000E as "1".
type record struct {
	Question question `json:"question"`
	Answer   answer   `json:"answer"`
	IsLossy  bool     `json:"lossy"`
}

type newAllocator = func(
	ctx context.Context,
	features internal.Features,
	state internal.AllocatedState,
	classes internal.DeviceClassLister,
	slices []*resourcev1.ResourceSlice,
	cache *cel.Cache,
) (internal.Allocator, error)

// recorder is upstream's allocator, which is listened to.
type recorder struct {
	internal.Allocator
	asked question
}

func (r recorder) Allocate(
	ctx context.Context, node *corev1.Node, claims []*resourcev1.ResourceClaim,
) ([]resourcev1.AllocationResult, error) {
	result, err := r.Allocator.Allocate(ctx, node, claims)
	if ctx.Err() == nil {
		r.asked.Node, r.asked.Claims = node, claims
		given := answer{Fit: err == nil && result != nil, NodeOnly: errors.Is(err, internal.ErrFailedAllocationOnNode)}
		if given.Fit {
			given.Result = result
		}
		if err != nil {
			given.Error = err.Error()
		}
		write(r.asked, given)
	}
	return result, err
}

// extendedRecorder is one of an allocator that counts what it does.
type extendedRecorder struct {
	recorder
	internal.AllocatorExtended
}

func write(asked question, given answer) {
	written, read := record{Question: asked, Answer: given}, record{}
	must(json.Unmarshal(encode(written), &read))
	written.IsLossy = !equality.Semantic.DeepEqual(written, read)
	fmt.Printf("%s%s\n", mark, encode(written))
}

func encode(value any) []byte {
	encoded, err := json.Marshal(value)
	must(err)
	return encoded
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func recording(inner newAllocator) newAllocator {
	return func(
		ctx context.Context,
		features internal.Features,
		state internal.AllocatedState,
		classes internal.DeviceClassLister,
		slices []*resourcev1.ResourceSlice,
		cache *cel.Cache,
	) (internal.Allocator, error) {
		allocator, err := inner(ctx, features, state, classes, slices, cache)
		if err != nil {
			return nil, err
		}
		listed, err := classes.List()
		if err != nil {
			return nil, err
		}
		asked := question{Classes: listed, Slices: slices, Features: features, State: describe(state)}
		recorded := recorder{allocator, asked}
		if extended, ok := allocator.(internal.AllocatorExtended); ok {
			return extendedRecorder{recorded, extended}, nil
		}
		return recorded, nil
	}
}

func describe(state internal.AllocatedState) allocatedState {
	var described allocatedState
	for device := range state.AllocatedDevices {
		described.Whole = append(described.Whole, name(device))
	}
	for share := range state.AllocatedSharedDeviceIDs {
		described.Shares = append(described.Shares, name(share.GetDeviceID()))
	}
	for device, capacity := range state.AggregatedCapacity {
		amounts := map[resourcev1.QualifiedName]string{}
		for key, amount := range capacity {
			amounts[key] = amount.String()
		}
		described.Consumed = append(described.Consumed, consumed{name(device), amounts})
	}
	return described
}

func name(device internal.DeviceID) [3]string {
	return [3]string{device.Driver.String(), device.Pool.String(), device.Device.String()}
}

func TestReplay(t *testing.T) {
	channels := map[string]struct {
		features internal.Features
		create   newAllocator
	}{
		"stable": {stable.SupportedFeatures, func(
			ctx context.Context,
			features internal.Features,
			state internal.AllocatedState,
			classes internal.DeviceClassLister,
			slices []*resourcev1.ResourceSlice,
			cache *cel.Cache,
		) (internal.Allocator, error) {
			return stable.NewAllocator(ctx, features, state.AllocatedDevices, classes, slices, cache)
		}},
		"incubating": {incubating.SupportedFeatures, func(
			ctx context.Context,
			features internal.Features,
			state internal.AllocatedState,
			classes internal.DeviceClassLister,
			slices []*resourcev1.ResourceSlice,
			cache *cel.Cache,
		) (internal.Allocator, error) {
			return incubating.NewAllocator(ctx, features, state, classes, slices, cache)
		}},
		"experimental": {experimental.SupportedFeatures, func(
			ctx context.Context,
			features internal.Features,
			state internal.AllocatedState,
			classes internal.DeviceClassLister,
			slices []*resourcev1.ResourceSlice,
			cache *cel.Cache,
		) (internal.Allocator, error) {
			return experimental.NewAllocator(ctx, features, state, classes, slices, cache)
		}},
	}
	for channel, implementation := range channels {
		t.Run(channel, func(t *testing.T) {
			create := recording(implementation.create)
			allocatortesting.TestAllocator(t, implementation.features, create)
			if channel != "stable" {
				allocatortesting.TestLexicographicalAllocator(t, implementation.features, create)
			}
		})
	}
}
