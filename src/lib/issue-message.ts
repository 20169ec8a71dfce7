import type { z } from "zod";
import type { WrongField } from "./check-fields.ts";

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

export const wrongFields = ({ issues }: z.ZodError): readonly WrongField[] =>
  issues.flatMap((issue) => {
    if (issue.code !== "unrecognized_keys") return [{ path: issue.path, message: issueMessage(issue) }];
    return issue.keys.map((key) => ({ path: [...issue.path, key], message: "is not a known field" }));
  });

/** Converts a Zod issue to a message for users who do not know Zod. The message states the condition that the value violates. */
export function issueMessage(issue: z.core.$ZodIssue): string {
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
      return `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.map((one) => JSON.stringify(one)).join(", ")}`;
    case "invalid_format":
      return formatMessage(issue);
    case "invalid_union":
      return unionMessage(issue.errors);
    case "unrecognized_keys":
      return `has unknown fields: ${issue.keys.join(", ")}`;
    case "invalid_key":
      return "has a name that is not allowed";
    default:
      return "is not valid";
  }
}

function boundMessage(origin: string, how: string, bound: number | bigint): string {
  if (origin === "string") return `must have ${how} ${bound} characters`;
  if (origin === "array" || origin === "set") return `must have ${how} ${bound} items`;
  if (origin === "record" || origin === "map" || origin === "object")
    return `must have ${how} ${bound} fields`;
  return `must be ${how} ${bound}`;
}

function formatMessage({ format, pattern }: z.core.$ZodIssueInvalidStringFormat): string {
  const known = FORMATS[format];
  if (known !== undefined) return `must be ${known}`;
  return pattern === undefined ? "does not have the required format" : `must match ${pattern}`;
}

/** Formats the issue of a union. If no member of the union accepts the type of the value, the message lists the accepted types. */
function unionMessage(forms: readonly (readonly z.core.$ZodIssue[])[]): string {
  const types = forms.map(([first]) =>
    first?.code === "invalid_type" && first.path.length === 0 ? TYPES[first.expected] : undefined,
  );
  if (forms.length === 0 || types.some((one) => one === undefined))
    return "matches none of the allowed forms";
  if (forms.every(([first]) => first?.message.endsWith("received undefined"))) return "is required";
  return `must be ${[...new Set(types)].join(" or ")}`;
}
