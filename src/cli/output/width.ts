import stringWidth from "string-width";

const graphemes = new Intl.Segmenter();
const ASCII = /^[\x20-\x7e]*$/;

/** Returns the width of a text in terminal cells. Wide characters take two cells. */
export const widthOf = (text: string): number => (ASCII.test(text) ? text.length : stringWidth(text));

/** Truncates a text to a width in terminal cells, and marks the end with `…`. */
export function fitTo(cells: number, text: string): string {
  if (widthOf(text) <= cells) return text;
  let fitted = "";
  let width = 0;
  for (const { segment } of graphemes.segment(text)) {
    width += widthOf(segment);
    if (width > cells - 1) break;
    fitted += segment;
  }
  return `${fitted}…`;
}
