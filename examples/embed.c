/* A model inside a C program: lists what it takes and gives, then runs it once.
 * Usage: embed MODEL.onnx, whose inputs are f32 with one open dimension in front. */
#include <dais/c.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(void) {
  fprintf(stderr, "%s\n", dais_last_error());
  return 1;
}

int main(int argc, char** argv) {
  const int64_t dims[] = {1, 1, 28, 28};
  dais_tensor image = {1 /* float */, 4, dims, NULL, 28 * 28 * sizeof(float)};
  dais_tensor output;
  float* pixels;
  size_t i;

  if (argc < 2) return 2;
  dais_session* session = dais_session_load(argv[1], NULL, 0);
  if (!session) return failed();
  for (i = 0; i < dais_input_count(session); ++i) printf("in:  %s\n", dais_input_name(session, i));
  for (i = 0; i < dais_output_count(session); ++i)
    printf("out: %s\n", dais_output_name(session, i));

  /* The session reads these elements at each run: they must outlive it. */
  pixels = calloc(28 * 28, sizeof(float));
  if (!pixels) return 1;
  image.data = pixels;
  if (dais_set_input(session, dais_input_name(session, 0), &image) || dais_run(session) ||
      dais_get_output(session, dais_output_name(session, 0), &output))
    return failed();
  for (i = 0; i < output.size_bytes / sizeof(float); ++i)
    printf("%.4f\n", ((const float*)output.data)[i]);

  dais_session_free(session);
  free(pixels);
  return 0;
}
