#include "train/stroke_font.h"

#include <algorithm>

namespace dais::train {
namespace {

// Each stroke is a row of points, two hexadecimal digits each: x from the glyph's left edge, and y
// upwards with the base line at 3, small letters to 9 and capitals to 12.
struct Entry {
  char character;
  const char* strokes;
};

constexpr Entry kEntries[] = {
    {'0', "13 04 0b 1c 4c 5b 54 43 13"},
    {'1', "1a 3c 33,13 53"},
    {'2', "0b 1c 4c 5b 59 03 53"},
    {'3', "0b 1c 4c 5b 59 48 28,48 57 54 43 13 04"},
    {'4', "43 4c 05 55"},
    {'5', "5c 0c 08 48 57 54 43 03"},
    {'6', "4c 2c 09 04 13 43 54 57 48 18 07"},
    {'7', "0c 5c 5b 23"},
    {'8', "18 09 0b 1c 4c 5b 59 48 18 07 04 13 43 54 57 48"},
    {'9', "13 33 56 5b 4c 1c 0b 09 18 48 59"},
    {'A', "03 3c 63,16 56"},
    {'B', "03 0c 4c 5b 59 48 08,48 57 54 43 03"},
    {'C', "5b 4c 1c 0b 04 13 43 54"},
    {'D', "03 0c 3c 5a 55 33 03"},
    {'E', "5c 0c 03 53,08 48"},
    {'F', "5c 0c 03,08 48"},
    {'G', "5b 4c 1c 0b 04 13 43 54 57 37"},
    {'H', "0c 03,5c 53,08 58"},
    {'I', "0c 03"},
    {'J', "4c 44 33 13 04"},
    {'K', "0c 03,5c 07,18 53"},
    {'L', "0c 03 53"},
    {'M', "03 0c 37 6c 63"},
    {'N', "03 0c 53 5c"},
    {'O', "13 04 0b 1c 4c 5b 54 43 13"},
    {'P', "03 0c 4c 5b 58 47 07"},
    {'Q', "13 04 0b 1c 4c 5b 54 43 13,35 52"},
    {'R', "03 0c 4c 5b 58 47 07,27 53"},
    {'S', "5b 4c 1c 0b 09 18 48 57 54 43 13 04"},
    {'T', "0c 6c,3c 33"},
    {'U', "0c 04 13 43 54 5c"},
    {'V', "0c 33 6c"},
    {'W', "0c 23 4a 63 8c"},
    {'X', "0c 53,5c 03"},
    {'Y', "0c 37 6c,37 33"},
    {'Z', "0c 5c 03 53"},
    {'a', "08 19 39 48 43,46 16 05 04 13 33 44"},
    {'b', "0c 03,04 13 33 44 48 39 19 08"},
    {'c', "48 39 19 08 04 13 33 44"},
    {'d', "4c 43,44 33 13 04 08 19 39 48"},
    {'e', "06 46 48 39 19 08 04 13 33 44"},
    {'f', "3c 2c 1b 13,09 39"},
    {'g', "49 41 30 10 01,44 33 13 04 08 19 39 48"},
    {'h', "0c 03,08 19 39 48 43"},
    {'i', "09 03,0b 0c"},
    {'j', "19 11 00,1b 1c"},
    {'k', "0c 03,49 05,16 43"},
    {'l', "0c 03"},
    {'m', "09 03,08 19 29 38 33,38 49 59 68 63"},
    {'n', "09 03,08 19 39 48 43"},
    {'o', "13 04 08 19 39 48 44 33 13"},
    {'p', "09 00,08 19 39 48 44 33 13 04"},
    {'q', "49 40,48 39 19 08 04 13 33 44"},
    {'r', "09 03,07 29 39"},
    {'s', "48 39 19 08 07 16 36 45 44 33 13 04"},
    {'t', "1c 14 23 33,09 39"},
    {'u', "09 04 13 33 44,49 43"},
    {'v', "09 23 49"},
    {'w', "09 13 38 53 69"},
    {'x', "09 43,49 03"},
    {'y', "09 23,49 10 00"},
    {'z', "09 49 03 43"},
    {'.', "03 04"},
    {',', "14 13 02"},
    {'-', "07 37"},
    {'+', "07 47,29 25"},
    {'=', "06 46,08 48"},
    {'/', "4c 02"},
    {':', "08 07,04 03"},
    {'(', "2d 0a 05 22"},
    {')', "0d 2a 25 02"},
    {'_', "02 52"},
    {'%', "6c 03,1c 0b 0a 19 2a 2b 1c,53 44 45 56 65 64 53"},
};

constexpr int kSpace = 3, kGap = 3, kBase = 3;

int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

}  // namespace

Glyph glyph(char character) {
  Glyph out;
  for (const Entry& entry : kEntries) {
    if (entry.character != character) continue;
    out.strokes.emplace_back();
    for (const char* at = entry.strokes; *at; ++at) {
      if (*at == ',') out.strokes.emplace_back();
      if (*at == ',' || *at == ' ') continue;
      const int x = digit(at[0]), y = digit(at[1]) - kBase;
      out.strokes.back().push_back({double(x), double(y)});
      out.advance = std::max(out.advance, x + kGap);
      ++at;
    }
    return out;
  }
  out.advance = kSpace + kGap;
  return out;
}

}  // namespace dais::train
