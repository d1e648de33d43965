#ifndef DAIS_C_H
#define DAIS_C_H

/* Seen from C++ everything here would look dated. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming) */
#include <stddef.h>
#include <stdint.h>

/* A small C API over dais::Model: load, set inputs, run, read outputs.
 * Functions that can fail return NULL or a non-zero value and leave a message for
 * dais_last_error(). A session is used by one thread at a time; sessions of one model made with
 * dais_session_clone share its weights and may run on different threads. */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dais_session dais_session;

/* Element types are the numbers of ONNX TensorProto.DataType: 1 float, 2 uint8, 3 int8, 6 int32,
 * 7 int64, 9 bool, 10 float16, 11 double, 16 bfloat16, ... */
typedef struct dais_tensor {
  int32_t dtype;
  int32_t rank;
  const int64_t* dims; /* rank sizes */
  const void* data;    /* row-major elements */
  size_t size_bytes;
} dais_tensor;

/* Message of the last failure on this thread; valid until the next call on this thread. */
const char* dais_last_error(void);

/* optimize: "off", "portable", "full" or NULL for full. threads: 0 for all usable cores. */
dais_session* dais_session_load(const char* path, const char* optimize, int threads);

/* A value that goes from run to run: what the output gives is what the input takes next time. An
 * input that is a state is set to start with; it counts for one run. */
typedef struct dais_state {
  const char* input;
  const char* output;
} dais_state;

/* How a session is made. What is 0 or NULL stands for what is said first. */
typedef struct dais_options {
  const char* optimize;         /* "full", "portable" or "off" */
  int threads;                  /* 0: all usable cores */
  const char* device;           /* "cpu"; "gpu", "gpu:1", ...; "auto"; "emulated" */
  const char* matmul_precision; /* of f32 products on a GPU: "highest", "high", "medium" */
  const dais_state* states;     /* kept without copies where the graph allows */
  size_t state_count;
} dais_options;

dais_session* dais_session_open(const char* path, const dais_options* options);
/* Where it runs, as people read it; lives as long as the session. */
const char* dais_session_device(const dais_session* session);
/* What runs on the CPU although the session has a device, a sentence for each operator; NULL beyond
 * the last one. */
const char* dais_session_warning(const dais_session* session, size_t index);
dais_session* dais_session_clone(const dais_session* session);
void dais_session_free(dais_session* session);

size_t dais_input_count(const dais_session* session);
size_t dais_output_count(const dais_session* session);
/* NULL beyond the last one. Names live as long as the session. */
const char* dais_input_name(const dais_session* session, size_t index);
const char* dais_output_name(const dais_session* session, size_t index);

/* Sets an input. Elements are not copied: they must stay alive until the last run that uses them.
 */
int dais_set_input(dais_session* session, const char* name, const dais_tensor* tensor);
int dais_run(dais_session* session);

/* Gives a state its memory, which holds its value before and after each run: elements are read and
 * written there until the session ends or is given other memory. */
int dais_bind_state(dais_session* session, const char* input, const dais_tensor* memory);
/* Makes the buffer of a cache that grows for so many entries from the start. */
int dais_reserve_state(dais_session* session, const char* input, int64_t entries);
/* Fills *tensor with a view of what a state holds, valid until the next run or the next call of
 * this function on the session. Fails when it has no value yet. */
int dais_get_state(dais_session* session, const char* input, dais_tensor* tensor);

/* Fills *tensor with a view of an output, valid until the next run. */
int dais_get_output(const dais_session* session, const char* name, dais_tensor* tensor);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-*,readability-identifier-naming) */
#endif
