import fc from "fast-check";
import { anyText } from "../support/any-text.ts";
import type { OpenApi } from "../support/documented.ts";
import { type ApiOperation, follow, kindOf, pathNames } from "./operations.ts";

/** A placeholder for an id of the caller's organization, replaced when the request is sent. */
export interface Own {
  readonly own: string;
}
export const isOwn = (value: unknown): value is Own =>
  typeof value === "object" && value !== null && Object.keys(value).join() === "own";

/** A generated request whose placeholders are resolved when it is sent. */
export interface Draft {
  readonly method: string;
  readonly params: Readonly<Record<string, string | Own>>;
  readonly query: readonly (readonly [string, unknown])[];
  readonly headers: Readonly<Record<string, string>>;
  /** A JSON value, or text that is sent unchanged. */
  readonly body: { readonly json: unknown } | { readonly text: string } | undefined;
}

/** Texts that often break programs, for fields, parameters and headers. */
const ODD_TEXTS = [
  ...[
    "",
    " ",
    "0",
    "-1",
    "1e309",
    "null",
    "undefined",
    "true",
    "[]",
    "{}",
    "*",
    "%",
    "%00",
    "..",
    "a/b",
    "?#&",
  ],
  ...["' OR 1=1 --", "$where", "__proto__", "constructor", "\u0000", "\ud800", "\u202e", "\r\nx: y", "💥"],
  ...["{}", "9".repeat(40), "a".repeat(300), "é".repeat(500), "2026-02-30T25:61:00Z", "ch_", "bp_"],
];
const ODD_VALUES = [
  ...[null, true, false, 0, -0, -1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308, [], {}, [[]], [null], [{}]],
  ...[{ $ref: "#" }, { type: "object" }, JSON.parse('{"__proto__": {"polluted": true}}')],
];
const BROKEN = [
  ...[
    "{",
    "[1,",
    '{"a":1}}',
    "'a'",
    "NaN",
    "\ufeff{}",
    '"text"',
    "null",
    "0",
    "[]",
    '{"a":1,"a":2}',
    "\u0000",
  ],
  ...["[".repeat(10_000), `{"a":${"9".repeat(5_000)}}`, `${'{"a":'.repeat(300)}1${"}".repeat(300)}`],
  ...["title=a&b=c", "<a/>", "x".repeat(1_100_000)],
];

const odd = fc.oneof(fc.constantFrom(...ODD_TEXTS), anyText(20));
const oddValue: fc.Arbitrary<unknown> = fc.oneof(odd, fc.constantFrom(...ODD_VALUES), fc.jsonValue());

/** Generates requests of an operation: most are valid, some nearly valid, and some not valid at all. */
export function draftsOf(document: OpenApi, operation: ApiOperation): fc.Arbitrary<Draft> {
  const schemaArbitrary = arbitrariesOf(document);
  const { method, path, parameters, bodySchema } = operation;
  const names = pathNames(path);
  const param = (name: string) =>
    fc.oneof(
      { weight: 8, arbitrary: fc.constant({ own: name }) },
      { weight: 1, arbitrary: exampleOf(parameters, name) },
      { weight: 2, arbitrary: odd },
    );
  const inQuery = parameters.filter((one) => one.in === "query");
  const pair = fc.oneof(
    { weight: 1, arbitrary: fc.tuple(odd, oddValue) },
    ...inQuery.map(({ name, schema }) => ({
      weight: 4,
      arbitrary: fc.tuple(
        fc.constant(name as string),
        fc.oneof(
          { weight: 4, arbitrary: fieldArbitrary(name, schemaArbitrary(schema)) },
          { weight: 1, arbitrary: oddValue },
        ),
      ),
    })),
  );
  const valid = bodySchema && repeatingId(schemaArbitrary(bodySchema), operation);
  const body: fc.Arbitrary<Draft["body"]> = valid
    ? fc.oneof(
        { weight: 10, arbitrary: fc.record({ json: valid }) },
        { weight: 8, arbitrary: fc.record({ json: withOneError(valid) }) },
        { weight: 2, arbitrary: fc.record({ json: fc.jsonValue() }) },
        { weight: 2, arbitrary: fc.record({ text: fc.constantFrom(...BROKEN) }) },
        { weight: 1, arbitrary: fc.constant(undefined) },
      )
    : fc.oneof(
        { weight: 20, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.record({ json: fc.jsonValue() }) },
      );
  return fc.record({
    method: fc.oneof(
      { weight: 40, arbitrary: fc.constant(method) },
      {
        weight: 1,
        arbitrary: fc.constantFrom("GET", "HEAD", "OPTIONS", "PATCH", "PUT", "POST", "DELETE", "QUERY"),
      },
    ),
    params: fc.record(Object.fromEntries(names.map((name) => [name, param(name)]))) as fc.Arbitrary<
      Draft["params"]
    >,
    query: fc.array(pair, { maxLength: 3 }),
    headers,
    body: method === "GET" || method === "DELETE" ? fc.constant(undefined) : body,
  });
}

/** When the body repeats the path's id, sets it in most of the generated bodies. */
const repeatingId = (
  body: fc.Arbitrary<unknown>,
  { path, bodySchema }: ApiOperation,
): fc.Arbitrary<unknown> =>
  bodySchema.required?.includes("id")
    ? fc
        .tuple(body, fc.nat(4))
        .map(([one, n]) => (n === 0 ? one : { ...Object(one), id: { own: pathNames(path).at(-1) } }))
    : body;

/** Generates deliveries and other requests to paths outside the API. */
export const deliveries = fc.record({
  method: fc.oneof(
    { weight: 8, arbitrary: fc.constant("POST") },
    { weight: 1, arbitrary: fc.constantFrom("GET", "HEAD", "PUT", "DELETE", "OPTIONS") },
  ),
  /** `undefined` stands for the address of a channel. */
  path: fc.oneof(
    { weight: 6, arbitrary: fc.constant(undefined) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "/hooks/",
        "/hooks/x",
        "/hooks/%",
        "/healthz",
        "/metrics",
        "/docs",
        "/nowhere",
        "/v1",
      ),
    },
  ),
  contentType: fc.constantFrom(
    ...[
      "application/json",
      "application/x-ndjson",
      "application/xml",
      "text/plain",
      "multipart/form-data",
      "multipart/form-data; boundary=x",
      "x",
    ],
    ...["application/x-www-form-urlencoded", "application/json; charset=utf-16", "application/octet-stream"],
  ),
  body: fc.oneof(fc.json(), fc.constantFrom(...BROKEN), anyText(10), fc.constant('{"id":1}')),
});

/** The list is short because each further wrong token counts as a guess. */
const TOKENS = ["Bearer", "Bearer nobody", "Basic YTpi", "bearer ey.ey.ey", `Bearer ik_${"0".repeat(40)}`];
const visibleText = fc.stringMatching(/^[\x21-\x7e]{1,60}$/);
const sometimes = (arbitrary: fc.Arbitrary<string>) =>
  fc.oneof({ weight: 24, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const headers = fc
  .record({
    authorization: fc.oneof(
      { weight: 24, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.constantFrom(...TOKENS) },
    ),
    "content-type": sometimes(
      fc.constantFrom("text/plain", "application/json; charset=latin1", "application/merge-patch+json", "x"),
    ),
    "if-match": sometimes(fc.oneof(visibleText, fc.constantFrom("*", '""', 'W/"a"', '"a", "b"'))),
    "if-none-match": sometimes(fc.oneof(visibleText, fc.constantFrom("*", '""', 'W/"a"', '"a", "b"'))),
    "idempotency-key": sometimes(fc.oneof(visibleText, fc.constantFrom("a", "a b", "k".repeat(300)))),
    "x-request-id": sometimes(visibleText),
    "x-organization-id": sometimes(visibleText),
    "last-event-id": sometimes(visibleText),
    "x-forwarded-for": sometimes(visibleText),
  })
  .map(
    (all) =>
      Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Record<
        string,
        string
      >,
  );

const exampleOf = (parameters: readonly OpenApi[], name: string): fc.Arbitrary<string> =>
  fc.constant(String(parameters.find((one) => one.name === name)?.schema.examples?.[0] ?? name));

/** Generates values of a field. A field that names entities sometimes gets ids of existing ones. */
function fieldArbitrary(name: string, arbitrary: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const kind = kindOf(name);
  if (kind === undefined) return arbitrary;
  const own = fc.constant({ own: kind });
  return fc.oneof(arbitrary, name === kind ? own : fc.array(own, { maxLength: 2 }));
}

const MAX_DEPTH = 5;

/** Generates values that a schema of the document allows. */
function arbitrariesOf(document: OpenApi): (part: OpenApi, depth?: number) => fc.Arbitrary<unknown> {
  return function of(part: OpenApi, depth = 0): fc.Arbitrary<unknown> {
    const schema = follow(document, part) ?? {};
    const made = make(schema, depth);
    const examples: readonly unknown[] = [
      ...(schema.examples ?? []),
      ...("default" in schema ? [schema.default] : []),
    ];
    return examples.length === 0 ? made : fc.oneof(fc.constantFrom(...examples), made);

    function make(one: OpenApi, at: number): fc.Arbitrary<unknown> {
      if ("const" in one) return fc.constant(one.const);
      if (one.enum) return fc.constantFrom(...one.enum);
      const variants = one.anyOf ?? one.oneOf ?? one.allOf;
      if (variants) return fc.oneof(...variants.map((variant: OpenApi) => of(variant, at + 1)));
      if (Array.isArray(one.type))
        return fc.oneof(...one.type.map((type: string) => make({ ...one, type }, at)));
      switch (one.type) {
        case "object":
          return objectOf(one, at);
        case "array": {
          const maxLength = at > MAX_DEPTH ? 0 : Math.min(one.maxItems ?? 3, 3);
          const minLength = Math.min(one.minItems ?? 0, maxLength);
          return fc.array(of(one.items ?? {}, at + 1), { minLength, maxLength });
        }
        case "string":
          return textOf(one);
        case "integer":
          return fc.integer({
            min: Math.max(one.minimum ?? -10, -(2 ** 31)),
            max: Math.min(one.maximum ?? 1_000, 2 ** 31 - 1),
          });
        case "number":
          return fc.double({ noNaN: true, noDefaultInfinity: true });
        case "boolean":
          return fc.boolean();
        case "null":
          return fc.constant(null);
        default:
          return fc.jsonValue({ maxDepth: 2 });
      }
    }
  };

  function objectOf(schema: OpenApi, depth: number): fc.Arbitrary<unknown> {
    const of = arbitrariesOf(document);
    const required: readonly string[] = schema.required ?? [];
    const entries = Object.entries<OpenApi>(schema.properties ?? {}).filter(
      ([name]) => required.includes(name) || depth <= MAX_DEPTH,
    );
    if (entries.length > 0) {
      const fields = entries.map(([name, one]) => [name, fieldArbitrary(name, of(one, depth + 1))] as const);
      const requiredKeys = entries.map(([name]) => name).filter((name) => required.includes(name));
      return fc.record(Object.fromEntries(fields), { requiredKeys });
    }
    const value = typeof schema.additionalProperties === "object" ? schema.additionalProperties : {};
    return fc.dictionary(fc.string({ maxLength: 8 }), of(value, depth + 1), { maxKeys: 3 });
  }
}

function textOf({ pattern, format, minLength = 0, maxLength = 40 }: OpenApi): fc.Arbitrary<string> {
  if (format === "date-time") {
    const min = new Date("1990-01-01");
    return fc
      .date({ min, max: new Date("2090-01-01"), noInvalidDate: true })
      .map((date) => date.toISOString());
  }
  if (format === "email") return fc.emailAddress();
  // fast-check cannot generate text for patterns with lookarounds.
  if (pattern && !/\(\?<?[=!]/.test(pattern)) return fc.stringMatching(new RegExp(pattern, "u"));
  const plain = fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, 40)) });
  return fc.oneof(plain, fc.constantFrom("main", "main:push", "push", "$.id", "$['a'][0]", "$..*", "a(?=b)"));
}

/** Generates values with one error: a part replaced, or a field added or removed. */
function withOneError(valid: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc
    .tuple(valid, fc.nat(1_000), oddValue, fc.constantFrom("replace", "add", "drop"))
    .map(([value, at, other, how]) => {
      const copy: OpenApi = structuredClone(value);
      const parts: (readonly [OpenApi, string])[] = [];
      const walk = (part: OpenApi): void => {
        if (typeof part !== "object" || part === null || isOwn(part)) return;
        for (const key of Object.keys(part)) {
          parts.push([part, key]);
          walk(part[key]);
        }
      };
      walk(copy);
      const [holder, key] = parts[at % Math.max(parts.length, 1)] ?? [];
      if (holder === undefined || key === undefined) return { [String(at)]: other };
      if (how === "replace") holder[key] = other;
      else if (how === "add" && !Array.isArray(holder)) holder[`${key}x`] = other;
      else if (Array.isArray(holder)) holder.splice(Number(key), 1);
      else delete holder[key];
      return copy;
    });
}
