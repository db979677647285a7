// On the fake driver: HONE_CUDA_LIBRARY, HONE_NVRTC_LIBRARY and HONE_NVML_LIBRARY name it.
package hone

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func newRuntime(t *testing.T) *Runtime {
	t.Helper()
	made, err := NewRuntime(RuntimeOptions{NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

func normArgs() NormArgs {
	args := NewNormArgs()
	args.X, args.Weight, args.Out = 1<<20, 2<<20, 3<<20
	return args
}

func preparedNorm(t *testing.T, r *Runtime) *PreparedNorm {
	t.Helper()
	norm := NewRmsNorm()
	norm.Hidden, norm.MaxRows = 4096, 64
	prepared, err := r.PrepareRmsNorm(norm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(prepared.Close)
	return prepared
}

func statusOf(err error) Status {
	var told *Error
	if errors.As(err, &told) {
		return told.Status
	}
	return StatusOk
}

func TestANormIsPreparedExplainedAndRun(t *testing.T) {
	r := newRuntime(t)
	norm := NewRmsNorm()
	if norm.Dtype != DtypeBf16 {
		t.Errorf("dtype is %d", norm.Dtype)
	}
	prepared := preparedNorm(t, r)
	args := normArgs()
	if err := prepared.Run(DefaultStream, &args, 16); err != nil {
		t.Fatal(err)
	}
	counters, err := r.Counters()
	runs := counters.RunsExact + counters.RunsNeighbour + counters.RunsForeign + counters.RunsFallback
	if err != nil || counters.Prepares != 1 || runs != 1 {
		t.Errorf("%+v, %v", counters, err)
	}
	if bytes, err := prepared.WorkspaceBytes(16); err != nil || bytes != 0 {
		t.Errorf("workspace of %d bytes, %v", bytes, err)
	}
	norm.Hidden = 4096
	if text, err := norm.Explain(r, 16, Text); err != nil || !strings.Contains(text, "rmsnorm") {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := prepared.Report(JSON); err != nil || !strings.HasPrefix(text, "{") {
		t.Errorf("%q, %v", text, err)
	}
	if r.DeviceName() == "" {
		t.Error("no name of the device")
	}
}

func TestSizesOfSeveralDimensions(t *testing.T) {
	r := newRuntime(t)
	attention := NewAttention()
	attention.Heads, attention.KvHeads, attention.HeadDim = 8, 2, 64
	attention.MaxBatch, attention.MaxQLen, attention.MaxKvLen = 2, 1, 128
	prepared, err := r.PrepareAttention(attention)
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	args := NewAttentionArgs()
	args.Q, args.K, args.V, args.Out, args.Workspace = 1<<20, 2<<20, 3<<20, 4<<20, 5<<20
	if err := prepared.Run(DefaultStream, &args, 2, 1, 128); err != nil {
		t.Error(err)
	}
	if _, err := prepared.WorkspaceBytes(2, 1, 128); err != nil {
		t.Error(err)
	}
}

func TestErrorsHaveTheLibrarysWords(t *testing.T) {
	r := newRuntime(t)
	linear := NewLinear()
	linear.In = -1
	_, err := r.PrepareLinear(linear)
	if statusOf(err) != StatusBadArgument || !strings.Contains(err.Error(), "in") {
		t.Error(err)
	}
	args := normArgs()
	args.X = 0
	if err := preparedNorm(t, r).Run(DefaultStream, &args, 1); statusOf(err) != StatusNullPointer {
		t.Error(err)
	}
	if _, err := NewRuntime(RuntimeOptions{Device: 99}); statusOf(err) != StatusNoGpu {
		t.Error(err)
	}
}

func TestOptionsThatCWouldCutOffAreRefused(t *testing.T) {
	for name, options := range map[string]RuntimeOptions{
		"Device":      {Device: 1 << 32},
		"CacheFile":   {CacheFile: "cache\x00.db"},
		"CaptureFile": {CaptureFile: "calls\x00.json"},
	} {
		_, err := NewRuntime(options)
		if statusOf(err) != StatusBadArgument || !strings.HasPrefix(err.Error(), name+" is ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAClosedHandleIsRefused(t *testing.T) {
	r := newRuntime(t)
	prepared := preparedNorm(t, r)
	prepared.Close()
	r.Close()
	args, weights, ofWeights := normArgs(), NewQuantizeWeights(), NewQuantizeWeightsArgs()
	calls := map[string]func() error{
		"Freeze":          r.Freeze,
		"Counters":        func() error { _, err := r.Counters(); return err },
		"Prepare":         func() error { _, err := r.PrepareRmsNorm(NewRmsNorm()); return err },
		"Explain":         func() error { _, err := NewRmsNorm().Explain(r, 1, Text); return err },
		"QuantizeWeights": func() error { return r.QuantizeWeights(weights, DefaultStream, &ofWeights, 1) },
		"Workspace":       func() error { _, err := r.QuantizeWeightsWorkspace(weights, 1); return err },
		"Run":             func() error { return prepared.Run(DefaultStream, &args, 1) },
		"Report":          func() error { _, err := prepared.Report(Text); return err },
		"WorkspaceBytes":  func() error { _, err := prepared.WorkspaceBytes(1); return err },
	}
	for name, made := range calls {
		if err := made(); statusOf(err) != StatusBadHandle || !strings.Contains(err.Error(), " is closed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if name := r.DeviceName(); name != "" {
		t.Errorf("%q", name)
	}
}

func TestAHandleThatNobodyMadeIsRefused(t *testing.T) {
	var unmade PreparedNorm
	defer unmade.Close()
	args := normArgs()
	if err := unmade.Run(DefaultStream, &args, 1); statusOf(err) != StatusBadHandle {
		t.Error(err)
	}
	var runtime Runtime
	defer runtime.Close()
	if err := runtime.Freeze(); statusOf(err) != StatusBadHandle {
		t.Error(err)
	}
}

// collect returns when the finalizers of all that was unreachable have run.
func collect() {
	for i := 0; i < 2; i++ {
		ran := make(chan bool)
		runtime.SetFinalizer(&struct{ word [64]int }{}, func(any) { close(ran) })
		runtime.GC()
		<-ran
	}
}

func TestAHandleIsNotFinalizedDuringItsLastCall(t *testing.T) {
	lastCall := func(use func(func() status) error, ended *atomic.Bool) {
		t.Helper()
		err := use(func() status {
			collect()
			if ended.Load() {
				t.Error("it was finalized")
			}
			return 0
		})
		if err != nil {
			t.Error(err)
		}
	}
	made := newRuntime(t)
	r, op := &Runtime{c: made.c}, &prepared{c: preparedNorm(t, made).c}
	var runtimeEnded, operatorEnded atomic.Bool
	runtime.SetFinalizer(r, func(*Runtime) { runtimeEnded.Store(true) })
	runtime.SetFinalizer(op, func(*prepared) { operatorEnded.Store(true) })
	lastCall(r.use, &runtimeEnded)
	lastCall(op.use, &operatorEnded)
}

func TestAFrozenRuntimeCompilesNothing(t *testing.T) {
	r := newRuntime(t)
	if err := r.Freeze(); err != nil {
		t.Fatal(err)
	}
	norm := NewRmsNorm()
	norm.Hidden = 512
	if _, err := r.PrepareRmsNorm(norm); statusOf(err) != StatusFrozen {
		t.Error(err)
	}
}

func TestManyGoroutinesUseOneHandle(t *testing.T) {
	r := newRuntime(t)
	prepared := preparedNorm(t, r)
	r.Close()
	var group sync.WaitGroup
	for rows := int64(1); rows < 9; rows++ {
		group.Add(1)
		go func(rows int64) {
			defer group.Done()
			args := normArgs()
			for i := 0; i < 100; i++ {
				if err := prepared.Run(DefaultStream, &args, rows); err != nil {
					t.Error(err)
				}
			}
		}(rows)
	}
	group.Wait()
}
