import { describe, expect, it } from "vitest";
import { EXCEPTIONS, MAX_EXCEPTIONS } from "./support/language/exceptions.ts";
import { RULES } from "./support/language/rules.ts";
import { splitSentences } from "./support/language/sentences.ts";
import { collectTexts, readTexts } from "./support/language/texts.ts";
import {
  countTextWords,
  findViolations,
  formatViolation,
  isExcepted,
} from "./support/language/violations.ts";

const texts = collectTexts();
const violations = findViolations(texts);

/** Names of the rules that a sentence breaks. */
const rulesBroken = (sentence: string): readonly string[] =>
  RULES.filter(({ matches }) => splitSentences(sentence).some((each) => matches(each, "comment"))).map(
    ({ name }) => name,
  );

describe("wording of the project", () => {
  it.each([
    "comment",
    "message",
    "doc",
    "test name",
  ] as const)("breaks no rule in any %s, except for listed exceptions", (kind) => {
    const ofKind = texts.filter((text) => text.kind === kind);
    const found = violations.filter(
      (violation) => violation.kind === kind && !isExcepted(violation, EXCEPTIONS),
    );
    expect(countTextWords(ofKind)).toBeGreaterThan(10_000);
    expect(found.map(formatViolation)).toEqual([]);
  });

  it("has at most 50 exceptions, and each of them is still needed and states its reason", () => {
    const isNeeded = (exception: (typeof EXCEPTIONS)[number]): boolean =>
      violations.some((violation) => isExcepted(violation, [exception]));
    expect(EXCEPTIONS.length).toBeLessThanOrEqual(MAX_EXCEPTIONS);
    expect(EXCEPTIONS.filter((exception) => !isNeeded(exception))).toEqual([]);
    expect(EXCEPTIONS.filter(({ reason }) => reason.split(" ").length < 3)).toEqual([]);
  });

  it("addresses the reader of the documentation as you, at least 8 times per 1,000 words", () => {
    const docs = texts.filter(({ kind, file }) => kind === "doc" && !file.endsWith("changelog.md"));
    const addressed = docs.reduce(
      (sum, { text }) => sum + (text.match(/\b(?:you|yours?)\b/gi)?.length ?? 0),
      0,
    );
    expect((1000 * addressed) / countTextWords(docs)).toBeGreaterThanOrEqual(8);
  });
});

describe("a rule of wording", () => {
  it.each([
    ["opening", "What comes in pieces is read later."],
    ["opening", "Returns a value. Of these headers one remains."],
    ["noun-clause", "Shows what is stored."],
    ["empty-subject", "Nothing is published."],
    ["empty-subject", "The address is known, but nobody reads it."],
    ["shorthand", "Undefined: the channel has no schema."],
    ["shorthand", "True where the channel is paused."],
    ["spelling", "The behaviour of a cancelled request."],
    ["field-word", "Mend the handler."],
    ["field-word", "The limits in force."],
    ["field-word", "The feed cannot be read since 10 minutes."],
    ["long-sentence", `It has ${"one more ".repeat(15)}word.`],
  ])("reports %s in %j", (rule, sentence) => {
    expect(rulesBroken(sentence)).toContain(rule);
  });

  it.each([
    "By default, the gateway publishes no event.",
    "Returns `undefined` when the channel has no schema.",
    "Ask the operator what to do.",
    "Does nothing after the first call.",
    "The handler runs `mend what is lest` as code.",
  ])("accepts %j", (sentence) => {
    expect(rulesBroken(sentence)).toEqual([]);
  });
});

describe("the collection of texts", () => {
  it("reads comments, strings, JSX text and test names, but no code, SQL, examples or directives", () => {
    const source = `
      // First line
      // and second line.
      /** Does it. @internal
       * @example
       * Lest this is read.
       */
      // biome-ignore lint/a: mended
      const text = \`Cannot read \${path} now\`;
      sql\`select what is from it\`;
      const view = <p class="lest it be">Shown to <b>people</b></p>;
    `;
    const read = readTexts("src/a.tsx", source).map(({ kind, line, text }) => ({ kind, line, text }));
    expect(read).toEqual([
      { kind: "comment", line: 2, text: "First line and second line." },
      { kind: "comment", line: 4, text: "Does it. @internal" },
      { kind: "message", line: 9, text: "Cannot read `X` now" },
      { kind: "message", line: 11, text: "Shown to `X`" },
    ]);
    expect(readTexts("test/a.test.ts", 'it.each([1])("rejects %s bytes", () => {});')).toEqual([
      { file: "test/a.test.ts", kind: "test name", line: 1, text: "rejects X bytes" },
    ]);
  });

  it("reads pages by paragraph and table cell, without code blocks and front matter", () => {
    const page =
      "---\nkind: reference\n---\n# Title\n\nOne\nparagraph.\n\n```sh\nlest\n```\n\n| a cell | `x` |\n|---|---|\n";
    expect(readTexts("a.md", page).map(({ line, text }) => [line, text])).toEqual([
      [4, "Title"],
      [6, "One paragraph."],
      [13, "a cell"],
      [13, "`X`"],
    ]);
  });
});
