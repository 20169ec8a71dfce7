import type { z } from "zod";
import type { WrongSetting } from "./check-settings.ts";

/** All messages that zod makes itself begin so; those of our schemas say their own. */
const OF_ZOD = /^(?:Invalid |Invalid$|Too (?:big|small)|Unrecognized key)/;

const TYPES: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  null: "null",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
};

const FORMATS: Readonly<Record<string, string>> = {
  date: "a date (YYYY-MM-DD)",
  datetime: "a time after RFC 3339",
  email: "an e-mail address",
  time: "a time of day",
  url: "a URL",
};

/** The findings of an issue, one for each field. */
export const wrongFields = ({ issues }: z.ZodError): readonly WrongSetting[] =>
  issues.flatMap((issue) => {
    if (issue.code !== "unrecognized_keys") return [{ path: issue.path, message: issueMessage(issue) }];
    return issue.keys.map((key) => ({ path: [...issue.path, key], message: "is not a known field" }));
  });

/** The message of an issue for people who know nothing of the library: what the value must be. */
export function issueMessage(issue: z.core.$ZodIssue): string {
  if (!OF_ZOD.test(issue.message)) return issue.message;
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
      return "does not fit";
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
  return pattern === undefined ? "is not of the form that is asked for" : `must match ${pattern}`;
}

/** Several forms are allowed: of values of another type, these types; of others, that none fits. */
function unionMessage(forms: readonly (readonly z.core.$ZodIssue[])[]): string {
  const types = forms.map(([first]) =>
    first?.code === "invalid_type" && first.path.length === 0 ? TYPES[first.expected] : undefined,
  );
  if (forms.length === 0 || types.some((one) => one === undefined))
    return "fits none of the forms that are allowed";
  if (forms.every(([first]) => first?.message.endsWith("received undefined"))) return "is required";
  return `must be ${[...new Set(types)].join(" or ")}`;
}
