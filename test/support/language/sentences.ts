/** A paragraph, list item or table cell, with the line on which it starts. */
export interface Passage {
  readonly line: number;
  readonly text: string;
}

const ABBREVIATION = /\b(?:e\.g|i\.e|etc|vs|cf|No)\.$/;

/** Splits prose into sentences. Code spans, links and placeholders become `X`, so that rules see words only. */
export function splitSentences(text: string): readonly string[] {
  const plain = text
    .replace(/\{@\w+ [^}]*\}/g, "X")
    .replace(/`(undefined|null|true|false)`/g, "$1")
    .replace(/``[^`]*``|`[^`]*`/g, "X")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/https?:\/\/\S+/g, "X")
    .replace(/<[^>]*>/g, "")
    .replace(/\*\*|__/g, "")
    .replace(/\s+/g, " ");
  const sentences: string[] = [];
  for (const piece of plain.split(/(?<=[.!?]["')\]]*)\s+(?=["'([]*[\p{Lu}\p{N}])/u)) {
    const last = sentences.at(-1);
    if (last !== undefined && ABBREVIATION.test(last)) sentences[sentences.length - 1] = `${last} ${piece}`;
    else sentences.push(piece);
  }
  return sentences
    .map((sentence) => sentence.trim().replace(/^["'(*_]+/, ""))
    .filter((sentence) => sentence !== "");
}

/** Joins lines into passages: a blank line, a list marker, a heading or a table row starts a new one. */
export function splitPassages(lines: readonly string[], firstLine: number): readonly Passage[] {
  const passages: { line: number; text: string }[] = [];
  let isOpen = false;
  lines.forEach((raw, index) => {
    const line = raw.trim();
    if (line === "" || /^(?:[-=*_]{3,}|\|?[\s|:-]+\|)$/.test(line)) {
      isOpen = false;
      return;
    }
    if (line.startsWith("|")) {
      for (const cell of line.replace(/`[^`]*`/g, "`X`").split(/(?<!\\)\|/)) {
        if (cell.trim() !== "") passages.push({ line: firstLine + index, text: cell.trim() });
      }
      isOpen = false;
      return;
    }
    const start = /^(?:[-*+•]|\d+[.)]|#{1,6}|>)\s+|^(?=--\w)/.exec(line);
    const last = passages.at(-1);
    if (start === null && isOpen && last !== undefined) last.text += ` ${line}`;
    else passages.push({ line: firstLine + index, text: line.slice(start?.[0].length ?? 0) });
    isOpen = !line.startsWith("#");
  });
  return passages;
}
