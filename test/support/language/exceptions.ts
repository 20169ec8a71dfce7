/** A sentence that breaks a rule on purpose. The list may only shrink: an exception that no text needs fails the test. */
export interface Exception {
  readonly file: string;
  readonly rule: string;
  /** Part of the sentence, as written. */
  readonly text: string;
  readonly reason: string;
}

export const MAX_EXCEPTIONS = 50;

export const EXCEPTIONS: readonly Exception[] = [
  {
    file: "src/resources/conversation/schema.ts",
    rule: "opening",
    text: "Where is my order?",
    reason: "Example of a question that an end customer asks an agent.",
  },
];
