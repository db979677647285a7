// Package hone launches tuned CUDA kernels: describe an operator, prepare it once, enqueue it as often as you
// like.
//
//	runtime, err := hone.NewRuntime(hone.RuntimeOptions{})
//	norm := hone.NewRmsNorm()
//	norm.Hidden = 4096
//	prepared, err := runtime.PrepareRmsNorm(norm)
//	args := hone.NewNormArgs()
//	args.X, args.Weight, args.Out = x, weight, out // addresses on the device
//	err = prepared.Run(hone.DefaultStream, &args, 16)
//
// Handles may be used by many goroutines at once, until they are closed; from then on calls answer StatusBadHandle.
// cgo finds libhone through pkg-config.
package hone

// #cgo pkg-config: hone
// #include <hone.h>
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// Status is a number of hone.h.
type Status int32

// Error is why a call did nothing.
type Error struct {
	Status Status
	// Message says what is wrong, what is allowed, and what to do.
	Message string
}

func (e *Error) Error() string { return e.Message }

// DevicePointer is an address in the memory of the GPU; 0 is none.
type DevicePointer uintptr

// Stream is a CUstream or cudaStream_t.
type Stream uintptr

// DefaultStream is the default stream of CUDA.
const DefaultStream Stream = 0

// TextFormat says how reports and explanations are written.
type TextFormat int32

const (
	// Text has lines for people.
	Text TextFormat = 0
	// JSON is one object; docs/json-output.md lists its members.
	JSON TextFormat = 1
)

type status = C.hone_status

// call makes a call of the library and takes what it has to say, which belongs to the thread.
func call(made func() status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	told := made()
	if told == C.HONE_OK {
		return nil
	}
	return &Error{Status(told), C.GoString(C.hone_last_error())}
}

// closed is what a call of a handle that is none any more answers: its memory may be something else by now.
func closed(what, makers string) error {
	return &Error{StatusBadHandle, "the " + what + " is closed, or not made by " + makers}
}

func mustInit(told status) {
	if told != C.HONE_OK {
		panic("hone: libhone does not know a struct of this package")
	}
}

func flag(set bool) C.int32_t {
	if set {
		return 1
	}
	return 0
}

// setPointer writes an address of the device into a struct of C; it is none that Go knows.
func setPointer(member unsafe.Pointer, value DevicePointer) {
	*(*DevicePointer)(member) = value
}

func (s Stream) c() unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&s))
}

// Version is that of the library: "0.1.0".
func Version() string { return C.GoString(C.hone_version()) }

// RuntimeOptions says what a runtime is made with.
type RuntimeOptions struct {
	// Device counts as the CUDA driver does, that is, after CUDA_VISIBLE_DEVICES.
	Device int
	// CacheFile has tuning results and images; "": HONE_CACHE, else the user's cache folder.
	CacheFile string
	// CaptureFile gets how often each problem is called, for `hone tune --captured FILE`; "": HONE_CAPTURE, else
	// nothing is captured.
	CaptureFile string
	// NoCache: no file is read or written; only the results that Hone was shipped with are known.
	NoCache bool
	// NoCompile is as if Freeze had been called at once.
	NoCompile bool
	// CheckIndices, for debugging, looks at indices on the device before each call, which waits for the stream.
	CheckIndices bool
}

// check refuses what C would cut off.
func (o RuntimeOptions) check() error {
	if o.Device < 0 || o.Device > math.MaxInt32 {
		return &Error{StatusBadArgument, fmt.Sprintf("Device is %d; allowed: 0 to %d", o.Device, math.MaxInt32)}
	}
	for _, file := range []struct{ option, name string }{{"CacheFile", o.CacheFile}, {"CaptureFile", o.CaptureFile}} {
		if strings.IndexByte(file.name, 0) >= 0 {
			return &Error{StatusBadArgument, fmt.Sprintf("%s is %q; allowed: no zero byte", file.option, file.name)}
		}
	}
	return nil
}

func (o RuntimeOptions) flags() C.uint32_t {
	var flags C.uint32_t
	if o.NoCache {
		flags |= C.HONE_NO_CACHE
	}
	if o.NoCompile {
		flags |= C.HONE_NO_COMPILE
	}
	if o.CheckIndices {
		flags |= C.HONE_CHECK_INDICES
	}
	return flags
}

// Runtime has the driver, the compiler and the tuning results of one GPU.
type Runtime struct {
	c    *C.hone_runtime
	once sync.Once
}

// NewRuntime loads the driver, retains the device's primary context, and reads the tuning results once.
func NewRuntime(options RuntimeOptions) (*Runtime, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	var given C.hone_runtime_options
	mustInit(C.hone_runtime_options_init(&given, C.size_t(unsafe.Sizeof(given))))
	given.flags = options.flags()
	given.device = C.int32_t(options.Device)
	if options.CacheFile != "" {
		given.cache_file = C.CString(options.CacheFile)
		defer C.free(unsafe.Pointer(given.cache_file))
	}
	if options.CaptureFile != "" {
		given.capture_file = C.CString(options.CaptureFile)
		defer C.free(unsafe.Pointer(given.capture_file))
	}
	made := &Runtime{}
	if err := call(func() status { return C.hone_runtime_create(&given, &made.c) }); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(made, (*Runtime).Close)
	return made, nil
}

// Close gives the device back; prepared operators stay usable. No other call may be under way.
func (r *Runtime) Close() {
	r.once.Do(func() {
		C.hone_runtime_destroy(r.c)
		r.c = nil
	})
}

// use makes a call with the runtime, which the garbage collector leaves alone meanwhile.
func (r *Runtime) use(made func() status) error {
	defer runtime.KeepAlive(r)
	if r.c == nil {
		return closed("runtime", "NewRuntime")
	}
	return call(made)
}

// Freeze makes every later Prepare that would have to compile an error.
func (r *Runtime) Freeze() error {
	return r.use(func() status { return C.hone_runtime_freeze(r.c) })
}

// DeviceName is "NVIDIA H100 80GB HBM3", say; "" of a closed runtime.
func (r *Runtime) DeviceName() string {
	defer runtime.KeepAlive(r)
	return C.GoString(C.hone_runtime_device_name(r.c))
}

// Counters tells what happened since the runtime was made.
type Counters struct {
	// Successful runs, by where the knowledge of their kernel came from.
	RunsExact, RunsNeighbour, RunsForeign, RunsFallback uint64
	FailedLaunches, Prepares, Compiles, ImageCacheHits  uint64
}

// Counters of this runtime.
func (r *Runtime) Counters() (Counters, error) {
	var c C.hone_counters
	mustInit(C.hone_counters_init(&c, C.size_t(unsafe.Sizeof(c))))
	err := r.use(func() status { return C.hone_runtime_counters(r.c, &c) })
	return Counters{uint64(c.runs_exact), uint64(c.runs_neighbour), uint64(c.runs_foreign), uint64(c.runs_fallback),
		uint64(c.failed_launches), uint64(c.prepares), uint64(c.compiles), uint64(c.image_cache_hits)}, err
}

func (r *Runtime) prepare(made func(*C.hone_runtime, **C.hone_operator) status) (*prepared, error) {
	op := &prepared{}
	if err := r.use(func() status { return made(r.c, &op.c) }); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(op, (*prepared).Close)
	return op, nil
}

// QuantizeWeightsWorkspace is the device memory that QuantizeWeights needs for out rows, in bytes.
func (r *Runtime) QuantizeWeightsWorkspace(weights QuantizeWeights, out int64) (uint64, error) {
	given := weights.c()
	var bytes C.size_t
	err := r.use(func() status {
		return C.hone_quantize_weights_workspace(r.c, &given, C.int64_t(out), &bytes)
	})
	return uint64(bytes), err
}

// QuantizeWeights quantizes out rows on the device and, unlike runs, waits until that is done.
func (r *Runtime) QuantizeWeights(weights QuantizeWeights, stream Stream, args *QuantizeWeightsArgs, out int64) error {
	given := weights.c()
	var c C.hone_quantize_weights_args
	args.write(&c)
	return r.use(func() status {
		return C.hone_quantize_weights_on_device(r.c, &given, &c, C.int64_t(out), stream.c())
	})
}

// writer writes a text as hone_operator_report does.
type writer func(text *C.char, capacity C.size_t, length *C.size_t) status

// wholeText asks for the length of a text first; use makes calls with the handle that tells it.
func wholeText(use func(func() status) error, told writer) (string, error) {
	var length C.size_t
	if err := use(func() status { return told(nil, 0, &length) }); err != nil {
		return "", err
	}
	capacity := length + 1
	text := (*C.char)(C.malloc(capacity))
	defer C.free(unsafe.Pointer(text))
	err := use(func() status { return told(text, capacity, &length) })
	if err != nil {
		return "", err
	}
	return C.GoString(text), nil
}

// prepared is what all prepared operators are; nil in one that no Prepare has made.
type prepared struct {
	c    *C.hone_operator
	once sync.Once
}

// Close ends it. No run may be under way; what runs have enqueued may.
func (p *prepared) Close() {
	if p == nil {
		return
	}
	p.once.Do(func() {
		C.hone_operator_destroy(p.c)
		p.c = nil
	})
}

// Report says what was prepared, bucket by bucket.
func (p *prepared) Report(format TextFormat) (string, error) {
	return wholeText(p.use, func(text *C.char, capacity C.size_t, length *C.size_t) status {
		return C.hone_operator_report(p.c, C.hone_text_format(format), text, capacity, length)
	})
}

func (p *prepared) use(made func() status) error {
	defer runtime.KeepAlive(p)
	if p == nil || p.c == nil {
		return closed("operator", "a Prepare")
	}
	return call(made)
}

func (p *prepared) workspace(asked func(bytes *C.size_t) status) (uint64, error) {
	var bytes C.size_t
	err := p.use(func() status { return asked(&bytes) })
	return uint64(bytes), err
}
