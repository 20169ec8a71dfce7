import { expect, test } from "vitest";
import { evaluateCode } from "../../../src/lib/json-schema/evaluate.ts";

test("generated code can load only the modules that validators need", () => {
  const code = 'module.exports = () => true; require("node:fs");';
  expect(() => evaluateCode(code, { patternBudget: Number.POSITIVE_INFINITY })).toThrow(
    "requires the unknown module node:fs",
  );
});
