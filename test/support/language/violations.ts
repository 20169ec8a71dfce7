import type { Exception } from "./exceptions.ts";
import { countWords, RULES } from "./rules.ts";
import { splitSentences } from "./sentences.ts";
import type { Text } from "./texts.ts";

export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly kind: Text["kind"];
  readonly rule: string;
  readonly suggestion: string;
  readonly sentence: string;
}

/** Returns every sentence that breaks a rule, once for each rule. */
export const findViolations = (texts: readonly Text[]): readonly Violation[] =>
  texts.flatMap(({ file, line, kind, text }) =>
    splitSentences(text).flatMap((sentence) =>
      RULES.filter(({ matches }) => matches(sentence, kind)).map(({ name, suggestion }) => ({
        file,
        line,
        kind,
        rule: name,
        suggestion,
        sentence,
      })),
    ),
  );

export const isExcepted = ({ file, rule, sentence }: Violation, exceptions: readonly Exception[]): boolean =>
  exceptions.some(
    (exception) => exception.file === file && exception.rule === rule && sentence.includes(exception.text),
  );

export const formatViolation = ({ file, line, rule, suggestion, sentence }: Violation): string =>
  `${file}:${line} [${rule}] ${sentence.length > 160 ? `${sentence.slice(0, 159)}…` : sentence}\n    ${suggestion}`;

/** Words of the texts, for rates. */
export const countTextWords = (texts: readonly Text[]): number =>
  texts.reduce((sum, { text }) => sum + countWords(text), 0);
