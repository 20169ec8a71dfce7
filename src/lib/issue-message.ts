import type { z } from "zod";
import type { WrongField } from "./check-fields.ts";
import { suggestNearest } from "./nearest.ts";

type Issue = z.core.$ZodIssue;

/** Codes of issues of values that have another type, or are another constant, than the schema. */
const MISMATCHES: readonly (string | undefined)[] = ["invalid_type", "invalid_value"];

/** Matches the default messages of Zod. Any other message comes from this project's own schemas. */
const ZOD_MESSAGE = /^(?:Invalid |Invalid$|Too (?:big|small)|Unrecognized key)/;

const TYPES: Readonly<Record<string, string>> = {
  array: "an array",
  boolean: "true or false",
  int: "an integer",
  null: "null",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
};

const FORMATS: Readonly<Record<string, string>> = {
  date: "a date (YYYY-MM-DD)",
  datetime: "a time in RFC 3339 format",
  email: "an email address",
  time: "a time of day",
  url: "a URL",
};

/** Returns one message per invalid field. @param input the value that was parsed */
export const wrongFields = (
  { issues }: { readonly issues: readonly Issue[] },
  input: unknown,
): readonly WrongField[] =>
  issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys")
      return issue.keys.map((key) => ({ path: [...issue.path, key], message: "is not a known field" }));
    const form = issue.code === "invalid_union" && ZOD_MESSAGE.test(issue.message) && findForm(issue.errors);
    if (form)
      return wrongFields(
        { issues: form.map((one) => ({ ...one, path: [...issue.path, ...one.path] })) },
        input,
      );
    return [{ path: issue.path, message: issueMessage(issue, valueAt(input, issue.path)) }];
  });

/**
 * Returns the issues of the form that the value was meant to have: of those that accept its type, the one with the fewest
 * issues. Returns `undefined` if no form accepts the type.
 */
const findForm = (forms: readonly (readonly Issue[])[]): readonly Issue[] | undefined =>
  forms
    .filter((issues) => !issues.some(({ code, path }) => path.length === 0 && MISMATCHES.includes(code)))
    .sort((one, other) => one.length - other.length)[0];

export const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (at, step) =>
      typeof at === "object" && at !== null ? (at as Record<PropertyKey, unknown>)[step] : undefined,
    value,
  );

/**
 * Converts a Zod issue to a message for users who do not know Zod. The message states the condition that the value violates.
 * @param value the value at the issue's path
 */
export function issueMessage(issue: Issue, value: unknown): string {
  if (!ZOD_MESSAGE.test(issue.message)) return issue.message;
  switch (issue.code) {
    case "invalid_type":
      if (issue.message.endsWith("received undefined")) return "is required";
      return `must be ${TYPES[issue.expected] ?? issue.expected}`;
    case "too_big":
      return boundMessage(issue.origin, issue.inclusive ? "at most" : "less than", issue.maximum);
    case "too_small":
      return boundMessage(issue.origin, issue.inclusive ? "at least" : "more than", issue.minimum);
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "invalid_value":
      return oneOfMessage(issue.values, value);
    case "invalid_format":
      return formatMessage(issue);
    case "invalid_union":
      if (value === undefined) return "is required";
      return issue.errors.length > 0
        ? unionMessage(issue.errors)
        : oneOfMessage("options" in issue ? (issue.options ?? []) : [], value);
    case "unrecognized_keys":
      return `has unknown fields: ${issue.keys.join(", ")}`;
    case "invalid_key":
      return "has a name that is not allowed";
    default:
      return "is not valid";
  }
}

function boundMessage(origin: string, how: string, bound: number | bigint): string {
  const plural = Number(bound) === 1 ? "" : "s";
  if (origin === "string") return `must have ${how} ${bound} character${plural}`;
  if (origin === "array" || origin === "set") return `must have ${how} ${bound} item${plural}`;
  if (origin === "record" || origin === "map" || origin === "object")
    return `must have ${how} ${bound} field${plural}`;
  return `must be ${how} ${bound}`;
}

function formatMessage({ format, pattern }: z.core.$ZodIssueInvalidStringFormat): string {
  const known = FORMATS[format];
  if (known !== undefined) return `must be ${known}`;
  return pattern === undefined ? "does not have the required format" : `must match ${pattern}`;
}

function oneOfMessage(values: readonly unknown[], value: unknown): string {
  if (value === undefined) return "is required";
  const texts = values.filter((one) => typeof one === "string");
  const hint = typeof value === "string" ? suggestNearest(value, texts) : "";
  return `must be ${values.length > 1 ? "one of " : ""}${values.map((one) => JSON.stringify(one)).join(", ")}${hint}`;
}

/** Lists the types and values that the forms of a union accept, for a value that has none of these types. */
function unionMessage(forms: readonly (readonly Issue[])[]): string {
  const accepted = forms.map((issues) => {
    const [root] = issues.filter(({ path }) => path.length === 0);
    if (root?.code === "invalid_type") return TYPES[root.expected] ?? root.expected;
    return root?.code === "invalid_value"
      ? root.values.map((one) => JSON.stringify(one)).join(" or ")
      : undefined;
  });
  return `must be ${[...new Set(accepted.filter((one) => one !== undefined))].join(" or ")}`;
}
