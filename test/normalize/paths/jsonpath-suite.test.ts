/**
 * Runs the JSONPath compliance test suite (https://github.com/jsonpath-standard/jsonpath-compliance-test-suite)
 * from the package jsonpath-rfc9535. The environment variable `JSONPATH_SUITE` selects another `cts.json`.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createPathCompiler } from "../../../src/normalize/paths/jsonpath.ts";

interface Case {
  readonly name: string;
  readonly selector: string;
  readonly invalid_selector?: true;
  readonly document?: unknown;
  readonly result?: readonly unknown[];
  /** All allowed results, for queries whose result depends on the order of object members. */
  readonly results?: readonly (readonly unknown[])[];
}

const bundled =
  "../../../node_modules/jsonpath-rfc9535/src/__tests__/jsonpath-compliance-test-suite/cts.json";
const file = process.env.JSONPATH_SUITE ?? new URL(bundled, import.meta.url);
const { tests }: { readonly tests: readonly Case[] } = JSON.parse(readFileSync(file, "utf8"));
const compile = createPathCompiler({ syntax: "rfc9535", item: {}, named: new Map() });

function select(selector: string, document: unknown): readonly unknown[] {
  const compiled = compile(selector);
  if (!compiled.ok) throw new Error(compiled.error);
  const { path } = compiled.value;
  if (path.kind === "query") return path.select(document, { left: 200_000 }).map(({ value }) => value);
  const value = path.get(document);
  return value === undefined ? [] : [value];
}

describe("JSONPath on the compliance test suite of RFC 9535", () => {
  it("runs at least the 687 cases of the bundled suite", () =>
    expect(tests.length).toBeGreaterThanOrEqual(687));

  it.each(tests.filter((test) => test.invalid_selector))("rejects $selector ($name)", ({ selector }) => {
    expect(compile(selector).ok).toBe(false);
  });

  it.each(tests.filter((test) => !test.invalid_selector))("evaluates $selector ($name)", (test) => {
    expect(test.results ?? [test.result]).toContainEqual(select(test.selector, test.document));
  });
});
