/* A model that carries values from run to run: states.
 * Usage: states MODEL.onnx (examples/running_mean.onnx), which takes a sample "x" f32[4], the sum of
 * earlier ones "sum" f32[4] and their number "count" f32[1], and gives "mean", "new_sum" and
 * "new_count". */
#include <dais/c.h>
#include <stdio.h>

static int failed(void) {
  fprintf(stderr, "%s\n", dais_last_error());
  return 1;
}

int main(int argc, char** argv) {
  const dais_state states[] = {{"sum", "new_sum"}, {"count", "new_count"}};
  const int64_t four[] = {4}, one[] = {1};
  float sample[4], sum[4] = {0}, zero = 0;
  const dais_tensor x = {1 /* float */, 1, four, sample, sizeof sample};
  const dais_tensor memory = {1, 1, four, sum, sizeof sum};
  const dais_tensor start = {1, 1, one, &zero, sizeof zero};
  dais_tensor mean, count;
  int run, i;

  if (argc < 2) return 2;
  const dais_options options = {.threads = 1, .states = states, .state_count = 2};
  dais_session* session = dais_session_open(argv[1], &options);
  if (!session) return failed();
  /* One state lies in memory of ours, the other starts from a value and stays with the session. */
  if (dais_bind_state(session, "sum", &memory) || dais_set_input(session, "count", &start) ||
      dais_set_input(session, "x", &x))
    return failed();
  for (run = 1; run <= 3; ++run) {
    for (i = 0; i < 4; ++i) sample[i] = (float)(run * (i + 1));
    if (dais_run(session) || dais_get_output(session, "mean", &mean) ||
        dais_get_state(session, "count", &count))
      return failed();
    printf("after %g: mean %g, sum %g\n", ((const float*)count.data)[0],
           ((const float*)mean.data)[3], sum[3]);
  }
  /* 4 + 8 + 12 in the last element. */
  i = sum[3] == 24 && ((const float*)mean.data)[3] == 8;
  dais_session_free(session);
  return i ? 0 : 1;
}
