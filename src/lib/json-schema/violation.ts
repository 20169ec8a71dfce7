import type { ErrorObject } from "ajv";
import type { SchemaViolation } from "./compiled-schema.ts";

const MAX_MESSAGE_LENGTH = 300;
const SHOWN_VALUES = 5;
const SHOWN_VALUE_LENGTH = 40;

/**
 * Converts Ajv's errors to a single violation. Ajv's last error names the failed keyword, and the errors before it explain why each
 * branch failed.
 */
export function firstViolation(errors: readonly ErrorObject[] | null | undefined): SchemaViolation {
  const last = errors?.at(-1);
  if (!errors || !last) return { path: "", message: "must be valid" };
  const inner = errors.slice(0, -1);
  if (last.keyword === "if" && inner.length > 0) return firstViolation(inner);
  return { path: last.instancePath, message: bounded(messageOf(last) + nearest(last, inner)) };
}

/** Formats an Ajv error, including the names and values that Ajv's own message omits. */
export function messageOf(error: ErrorObject): string {
  const message = error.message ?? `must pass ${error.keyword}`;
  const params: Readonly<Record<string, unknown>> = error.params;
  switch (error.keyword) {
    case "additionalProperties":
      return `${message}: ${show(params.additionalProperty)}`;
    case "unevaluatedProperties":
      return `${message}: ${show(params.unevaluatedProperty)}`;
    case "propertyNames":
      return `${message}: ${show(params.propertyName)}`;
    case "const":
      return `must be ${show(params.allowedValue)}`;
    case "enum":
      return `must be one of ${list(params.allowedValues)}`;
    default:
      return bounded(message);
  }
}

/**
 * Formats the error with the longest path among the errors of all branches. That error most likely belongs to the branch that the
 * author intended.
 */
function nearest(last: ErrorObject, inner: readonly ErrorObject[]): string {
  if (!["anyOf", "oneOf", "propertyNames", "contains"].includes(last.keyword)) return "";
  let best: ErrorObject | undefined;
  for (const error of inner) {
    if (!best || depth(error) > depth(best)) best = error;
  }
  return best ? `; nearest: ${best.instancePath} ${messageOf(best)}` : "";
}

const depth = (error: ErrorObject): number => error.instancePath.split("/").length;

function list(values: unknown): string {
  if (!Array.isArray(values)) return "the allowed values";
  const more = values.length - SHOWN_VALUES;
  return values.slice(0, SHOWN_VALUES).map(show).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN_VALUE_LENGTH ? `${text.slice(0, SHOWN_VALUE_LENGTH)}…` : text;
}

const bounded = (text: string): string =>
  text.length > MAX_MESSAGE_LENGTH ? `${text.slice(0, MAX_MESSAGE_LENGTH)}…` : text;
