import { expect, it } from "vitest";
import { readBody } from "../../src/normalize/body/bodies.ts";
import { runToEnd } from "../support/run-to-end.ts";

const attributes = (length: number): string =>
  Array.from({ length }, (_, index) => `x${index}="1"`).join(" ");

// As long as a document may be: a parser of quadratic time would not end.
it.each([
  ["comments", `${"<!-- x -->".repeat(104_000)}<a/>`, true],
  ["blanks in a tag", `<a${" ".repeat(1_048_000)}/>`, true],
  ["blanks in a tag that never closes", `<a${" ".repeat(1_048_000)}`, false],
  ["elements inside each other", "<a>".repeat(149_000) + "</a>".repeat(149_000), false],
  ["elements that never close", "<a>".repeat(340_000), false],
  ["elements beside each other", `<a>${"<b/>".repeat(260_000)}</a>`, false],
  ["as many elements as there may be", `<a>${`<b/>${" ".repeat(16)}`.repeat(49_000)}</a>`, true],
  ["references", `<a>${"&amp;".repeat(200_000)}</a>`, true],
  ["attributes", `<a ${attributes(75_000)}/>`, false],
  ["as many attributes as there may be", `<a ${attributes(50_000)}/>`, true],
])("1 MiB of XML, nothing but %s, is read, or refused, in linear time", (_, text, isDocument) => {
  expect(runToEnd(() => readBody(Buffer.from(text), "application/xml")).ok).toBe(isDocument);
});
