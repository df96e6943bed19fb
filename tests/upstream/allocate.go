package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type allocateQuestion struct {
	callLimit
	Node      *corev1.Node                `json:"node"`
	Classes   []*resourcev1.DeviceClass   `json:"classes"`
	Slices    []*resourcev1.ResourceSlice `json:"slices"`
	Claims    []*resourcev1.ResourceClaim `json:"claims"`
	Allocated []*resourcev1.ResourceClaim `json:"allocated"`
	Features  *structured.Features        `json:"features"`
	Repeat    int                         `json:"repeat"`
}

type allocateAnswer struct {
	Fit        bool                          `json:"fit"`
	Result     []resourcev1.AllocationResult `json:"result"`
	Error      string                        `json:"error,omitempty"`
	ErrorClass string                        `json:"errorClass,omitempty"`
	NodeOnly   bool                          `json:"nodeOnly,omitempty"`
	FirstUs    float64                       `json:"firstUs"`
	BestUs     float64                       `json:"bestUs"`
}

// defaultFeatures are the gates that are on in Kubernetes 1.37.
var defaultFeatures = structured.Features{
	AdminAccess:            true,
	ConsumableCapacity:     true,
	DeviceBindingAndStatus: true,
	DeviceTaints:           true,
	PartitionableDevices:   true,
	PrioritizedList:        true,
}

// The stable implementation walks pools in random order, so it can be no referee.
func init() {
	structured.EnableAllocators("incubating", "experimental")
}

func allocate(question allocateQuestion) allocateAnswer {
	features := defaultFeatures
	if question.Features != nil {
		features = *question.Features
	}
	node := question.Node
	if node == nil {
		node = &corev1.Node{}
	}
	classes := classLister(question.Classes)
	// A new cache makes the first call a cold one.
	cache := cel.NewCache(10, cel.Features{
		EnableConsumableCapacity: features.ConsumableCapacity,
		EnableListTypeAttributes: features.ListTypeAttributes,
	})
	state := allocatedState(question.Allocated, features.ConsumableCapacity)

	var answer allocateAnswer
	for call := range max(1, question.Repeat) {
		ctx, cancel := context.WithTimeout(context.Background(), question.timeout())
		started := time.Now()
		var result []resourcev1.AllocationResult
		allocator, err := structured.NewAllocator(ctx, features, state, classes, question.Slices, cache)
		if err == nil {
			result, err = allocator.Allocate(ctx, node, question.Claims)
		}
		took := microseconds(time.Since(started))
		cancel()
		if call == 0 {
			answer = allocateAnswer{Fit: err == nil && result != nil, FirstUs: took, BestUs: took}
			if answer.Fit {
				answer.Result = result
			}
			if err != nil {
				answer.Error, answer.ErrorClass = err.Error(), errorClass(err)
				answer.NodeOnly = errors.Is(err, structured.ErrFailedAllocationOnNode)
			}
		}
		answer.BestUs = min(answer.BestUs, took)
		if answer.ErrorClass == "timeout" {
			break
		}
	}
	return answer
}

// allocatedState counts devices as kube-scheduler does: admin access does not count, and a result with a share ID is
// a share only while the feature is on.
func allocatedState(claims []*resourcev1.ResourceClaim, consumableCapacity bool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			device := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case result.AdminAccess != nil && *result.AdminAccess:
			case result.ShareID != nil && consumableCapacity:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(device, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(device, result.ConsumedCapacity))
				}
			default:
				state.AllocatedDevices.Insert(device)
			}
		}
	}
	return state
}

// errorClasses pairs a class with what marks its errors; the allocator has texts, not types. The first that is found
// counts.
var errorClasses = []struct{ class, mark string }{
	{"compile", ": CEL compile error: "},
	{"compile", "compile derived attribute "},
	{"runtime", ": CEL runtime error: "},
	{"runtime", "evaluate derived attribute "},
	{"limit", " exceeds the claim limit of "},
	{"limit", " is too large"},
	{"incomplete", " is currently being updated"},
	{"invalid", " is currently invalid"},
	{"invalid", "invalid resource pools were encountered"},
}

func errorClass(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	for _, row := range errorClasses {
		if strings.Contains(err.Error(), row.mark) {
			return row.class
		}
	}
	return "other"
}

type classLister []*resourcev1.DeviceClass

func (l classLister) List() ([]*resourcev1.DeviceClass, error) {
	return l, nil
}

func (l classLister) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("deviceclass %q not found", name)
}
