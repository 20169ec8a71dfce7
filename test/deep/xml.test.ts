import { expect, it } from "vitest";
import { readBody } from "../../src/normalize/body/bodies.ts";
import { runToEnd } from "../support/run-to-end.ts";

// As long as a document may be: a parser of quadratic time would not end.
it.each([
  ["comments", `${"<!-- x -->".repeat(104_000)}<a/>`, true],
  ["blanks in a tag", `<a${" ".repeat(1_048_000)}/>`, true],
  ["blanks in a tag that never closes", `<a${" ".repeat(1_048_000)}`, false],
  ["elements inside each other", "<a>".repeat(149_000) + "</a>".repeat(149_000), false],
  ["elements that never close", "<a>".repeat(340_000), false],
  ["elements beside each other", `<a>${"<b/>".repeat(260_000)}</a>`, true],
  ["references", `<a>${"&amp;".repeat(200_000)}</a>`, true],
  ["attributes", `<a ${Array.from({ length: 75_000 }, (_, index) => `x${index}="1"`).join(" ")}/>`, true],
])("1 MiB of XML, nothing but %s, is read, or refused, in linear time", (_, text, isDocument) => {
  expect(runToEnd(() => readBody(Buffer.from(text), "application/xml")).ok).toBe(isDocument);
});
