export type TextKind = "comment" | "message" | "doc" | "test name";

/** One pattern of wording that readers stumble over. */
export interface Rule {
  readonly name: string;
  /** Tested against one sentence at a time, in which code is replaced by `X`. */
  readonly matches: (sentence: string, kind: TextKind) => boolean;
  readonly suggestion: string;
}

/** Longest sentence in words. Writers aim at 25. */
const MAX_WORDS = 30;

const SENTENCE_START =
  /^(?:what|who|whoever|where|of|by|as|told|behind|beyond)\b(?! (?:default|contrast|hand)\b)/i;

const NOUN_CLAUSE =
  /\bwhat (?:is|was|are|were|has|had|have|it|its|they|he|we|you|one|comes?|came|goes|stands?|stood|can|could|may|must|will|would|does|did|the|a|an|each|follows|remains|belongs|others?|was|no|only|this|that)\b/i;

const FIELD_WORDS: readonly (readonly [words: RegExp, instead: string])[] = [
  [/\blest\b/i, "so that … not"],
  [/\bmend(?:s|ed|ing)?\b/i, "fix"],
  [/\bcure[sd]?\b/i, "fix, or suggested action"],
  [/\banew\b/i, "again"],
  [/\bof late\b/i, "recently"],
  [/\bbe it\b/i, "whether"],
  [/\bwhoever\b/i, "anyone who, or the actor's name"],
  [/\bin force\b/i, "active, current"],
  [/\btold of\b|\bhears? of\b/i, "is called with, is notified"],
  [/\bgo(?:es)? by\b|\bwent by\b/i, "uses, follows"],
  [/\bunder ?way\b|\bon (?:its|their) way\b/i, "in flight, pending"],
  [
    /\bsince (?:\d+|X|a|an|one|two|three|five|ten|many|some) (?:ms|milliseconds?|seconds?|minutes?|hours?|days?|weeks?)\b/i,
    "for N minutes",
  ],
  [/\bpatience\b/i, "timeout"],
  [/\bbeside\b/i, "next to, in addition to"],
  [/\bat hand\b/i, "available"],
  [/\bby (?:itself|themselves)\b/i, "alone, or automatically"],
  [
    /\bgiv(?:es?|ing) way\b|\bgave way\b|\btak(?:es?|ing) turns\b|\bmak(?:es?|ing) room\b/i,
    "yields, is evicted, is scheduled round-robin",
  ],
  [/\bprograms? of before\b/i, "earlier versions"],
  [/\bprocessor time\b/i, "CPU time"],
  [/\bdeclared set-?up\b/i, "declarative configuration"],
  [/\bown (?:PostgreSQL|Redis)\b/i, "embedded PostgreSQL, embedded Redis"],
  [/\bchannel number\b/i, "internal channel id"],
];

const EMPTY_SUBJECT =
  /^(?:nobody|nothing|no one|none)\b.*\s|\b(?:nobody|nothing|no one) (?:is|was|are|were|has|had|can|could|may|might|must|will|would|should|does|did|(?!less|else|across|besides|towards|unless)[a-z]{2,}s)\b/i;

const SHORTHAND = /^(?:undefined|absent|null|none|true|false)(?::| where\b)/i;

const BRITISH =
  /\b(?:behaviours?|colou?rs?(?<=our|ours)|cancell(?:ed|ing)|licences?|honour\w*|favour\w*|organis\w+|recognis\w+|normalis\w+|serialis\w+|initialis\w+|catalogues?|centre[sd]?|judgement)\b/i;

/** Words of a sentence. Dashes and other signs that stand alone do not count. */
export const countWords = (text: string): number =>
  text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

const pattern = (name: string, words: RegExp, suggestion: string): Rule => ({
  name,
  matches: (sentence) => words.test(sentence),
  suggestion,
});

export const RULES: readonly Rule[] = [
  {
    name: "opening",
    // Messages and table cells that start in lower case are labels, not sentences.
    matches: (sentence, kind) =>
      SENTENCE_START.test(sentence) &&
      (/^\p{Lu}/u.test(sentence) || kind === "comment" || kind === "test name"),
    suggestion: "open with the verb or the thing: Returns …, Called when …, Maximum …",
  },
  pattern(
    "noun-clause",
    NOUN_CLAUSE,
    'name the thing instead of "what …": the stored events, the reason, the value',
  ),
  pattern("empty-subject", EMPTY_SUBJECT, 'say what is: name the actor instead of "nothing" or "nobody"'),
  pattern("shorthand", SHORTHAND, "say it in words: `undefined` when …, Whether …"),
  pattern("spelling", BRITISH, "American spelling, as in the API"),
  ...FIELD_WORDS.map(([words, instead]) => pattern("field-word", words, `write: ${instead}`)),
  {
    name: "long-sentence",
    matches: (sentence) => countWords(sentence) > MAX_WORDS,
    suggestion: `at most ${MAX_WORDS} words: split it, one idea each`,
  },
];
