import { eastAsianWidth } from "get-east-asian-width";

const graphemes = new Intl.Segmenter();
const ASCII = /^[\x20-\x7e]*$/;

export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += widthOfGrapheme(segment);
  return width;
}

/** Truncates a text to a width in terminal characters, and marks the end with `…`. */
export function fitTo(cells: number, text: string): string {
  if (widthOf(text) <= cells) return text;
  let fitted = "";
  let width = 0;
  for (const { segment } of graphemes.segment(text)) {
    width += widthOfGrapheme(segment);
    if (width > cells - 1) break;
    fitted += segment;
  }
  return `${fitted}…`;
}

const widthOfGrapheme = (segment: string): number => eastAsianWidth(segment.codePointAt(0) ?? 0x20);
