/**
 * Runs the required cases of the JSON Schema test suite (https://github.com/json-schema-org/JSON-Schema-Test-Suite).
 * `JSON_SCHEMA_SUITE` names a clone of the suite. Each case gets the right verdict, or its schema is rejected and the keyword named.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { JsonSchema } from "../../src/lib/json-schema/compiled-schema.ts";
import { FORMATS } from "../../src/lib/json-schema/generate/formats.ts";
import { sharedSchemas } from "../support/schemas.ts";

const CALLER = { lane: "a" };

interface Group {
  readonly description: string;
  readonly schema: JsonSchema;
  readonly tests: readonly {
    readonly description: string;
    readonly data: unknown;
    readonly valid: boolean;
  }[];
}

const root = process.env.JSON_SCHEMA_SUITE;
const { signal } = new AbortController();
/** Keywords that may end the path of a rejection. */
const REJECTED_KEYWORD = /\/(?:\$ref|\$dynamicRef|\$schema|contains|enum)$/;
const DRAFT_07 = { $schema: "http://json-schema.org/draft-07/schema#" };

const groupsOf = (draft: string): readonly [string, Group][] => {
  const folder = join(root ?? "", "tests", draft);
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .flatMap((file) => {
      const groups: readonly Group[] = JSON.parse(readFileSync(join(folder, file), "utf8"));
      return groups.map((group): [string, Group] => [`${file}: ${group.description}`, group]);
    });
};

/** Inlet asserts known formats, so cases that expect a format to be only an annotation have the opposite verdict. */
function isExpected(schema: JsonSchema, { description, valid }: Group["tests"][number]): boolean {
  const format = typeof schema === "object" ? String(schema.format) : "";
  return description.includes("only an annotation") && format in FORMATS ? false : valid;
}

describe.skipIf(root === undefined)(
  "the official JSON Schema test suite (cloned to JSON_SCHEMA_SUITE)",
  () => {
    describe.each(["draft2020-12", "draft7"])("draft %s", (draft) => {
      it.each(root === undefined ? [] : groupsOf(draft))("has the expected verdicts for %s", async (_, {
        schema,
        tests,
      }) => {
        const named = draft === "draft7" && typeof schema === "object" ? { ...DRAFT_07, ...schema } : schema;
        const compiled = await sharedSchemas().compile(named, { signal, lane: "a" });
        if (!compiled.ok) {
          expect(compiled.error.map(({ path }) => path)).toEqual([expect.stringMatching(REJECTED_KEYWORD)]);
          return;
        }
        for (const test of tests) {
          const violation = await compiled.value.validate(test.data, CALLER);
          expect([test.description, violation === undefined]).toEqual([
            test.description,
            isExpected(schema, test),
          ]);
        }
      });
    });
  },
);
