/* What the shim's two halves share: shim.c decides, shim_calls.c has the functions that are put before the C
 * library's. */
#pragma once

enum end { passes, fails, tears };

/* Whether the allocation that this code asks for is to fail. */
int allocation_fails(const void* caller);
/* What the I/O call that comes now is to do; does not come back when the process is killed before it. */
enum end next_io(int needs_space);
/* Seconds that the clock of the day is off now. */
long clock_offset_now(void);
/* The end of the process after half of a write. */
void die(void);

/* Pipes and terminals take no space. */
int is_regular(int file);
/* A line of the trace: a call, and its file or files. */
void note(const char* call, const char* name, const char* other);
void note_file(const char* call, int file);
