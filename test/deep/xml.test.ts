import { expect, it } from "vitest";
import { readBody } from "../../src/normalize/body/bodies.ts";
import { runToEnd } from "../support/run-to-end.ts";

const attributes = (length: number): string =>
  Array.from({ length }, (_, index) => `x${index}="1"`).join(" ");

// Inputs have the maximum length of a document, so a parser with quadratic time would not finish.
it.each([
  ["comments", `${"<!-- x -->".repeat(104_000)}<a/>`, true],
  ["spaces in a tag", `<a${" ".repeat(1_048_000)}/>`, true],
  ["spaces in a tag that never closes", `<a${" ".repeat(1_048_000)}`, false],
  ["nested elements", "<a>".repeat(149_000) + "</a>".repeat(149_000), false],
  ["elements that never close", "<a>".repeat(340_000), false],
  ["sibling elements", `<a>${"<b/>".repeat(260_000)}</a>`, false],
  ["the maximum number of elements", `<a>${`<b/>${" ".repeat(16)}`.repeat(49_000)}</a>`, true],
  ["references", `<a>${"&amp;".repeat(200_000)}</a>`, true],
  ["attributes", `<a ${attributes(75_000)}/>`, false],
  ["the maximum number of attributes", `<a ${attributes(50_000)}/>`, true],
])("the XML parser reads or rejects 1 MiB of only %s in linear time", (_, text, isDocument) => {
  expect(runToEnd(() => readBody(Buffer.from(text), "application/xml")).ok).toBe(isDocument);
});
