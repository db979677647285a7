"""libhone and what it takes: its functions and structs, arrays of other libraries, streams."""
