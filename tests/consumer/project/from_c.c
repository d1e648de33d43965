/* The same in C: the header must be plain C, and failures must leave a message. */
#include <dais/c.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  static float pixels[8 * 28 * 28];
  const int64_t dims[] = {8, 1, 28, 28};
  const dais_tensor image = {1, 4, dims, pixels, sizeof pixels};
  dais_tensor probability;
  if (argc < 2) return 2;
  dais_session* session = dais_session_load(argv[1], "full", 1);
  if (!session || dais_set_input(session, "image", &image) || dais_run(session) ||
      dais_get_output(session, "probability", &probability)) {
    fprintf(stderr, "%s\n", dais_last_error());
    return 1;
  }
  if (probability.rank != 2 || probability.dims[0] != 8 || probability.dims[1] != 10) return 1;
  if (dais_set_input(session, "imag", &image) == 0 || !strstr(dais_last_error(), "'image'"))
    return 1;
  dais_session_free(session);
  return dais_session_load("absent.onnx", NULL, 0) ? 1 : 0;
}
