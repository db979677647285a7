package hone

import "fmt"

// enqueue runs an RMSNorm of rows that are on the device already.
func enqueue(x, weight, out DevicePointer, rows int64) error {
	runtime, err := NewRuntime(RuntimeOptions{})
	if err != nil {
		return err
	}
	norm := NewRmsNorm()
	norm.Hidden = 4096
	prepared, err := runtime.PrepareRmsNorm(norm)
	if err != nil {
		return err
	}
	args := NewNormArgs()
	args.X, args.Weight, args.Out = x, weight, out
	return prepared.Run(DefaultStream, &args, rows)
}

func Example() {
	fmt.Println(enqueue(1<<20, 2<<20, 3<<20, 16))
	// Output: <nil>
}
