import { expect, test } from "vitest";
import { evaluateCode } from "../../../src/lib/json-schema/evaluate.ts";

test("evaluateCode throws if generated code requires a module that validators do not need", () => {
  const code = 'module.exports = () => true; require("node:fs");';
  expect(() => evaluateCode(code, { patternBudget: Number.POSITIVE_INFINITY })).toThrow(
    "requires the unknown module node:fs",
  );
});
