import { TextDecoder } from "node:util";
import type { BodyDecoding } from "../../event/body-reading.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import type { CompiledDefinitions } from "../compile.ts";
import { type Fault, invalidBody } from "../fault.ts";
import { type Path, type PathBudget, PathBudgetError, type PathNode } from "../paths/path.ts";
import { type Body, readJson } from "./bodies.ts";
import { JsonText } from "./payload-slice.ts";

/** Base64 in the standard or the URL-safe alphabet (RFC 4648, sections 4 and 5), with or without padding. */
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Replaces the selected texts of a JSON body by the documents that they contain. The rest of the body keeps its spelling. A missing, null or
 * empty value stays as it is.
 */
export function decodeTexts(
  body: Body,
  { path, as }: NonNullable<CompiledDefinitions["decode"]>,
  budget: PathBudget,
): Result<Body, Fault> {
  const { json } = body;
  if (json === undefined) return body.bytes.length === 0 ? ok(body) : fail(path.text, "the body is not JSON");
  const selected = selectTexts(json, path.path, budget);
  if (!selected.ok) return selected;
  let text = "";
  let end = 0;
  for (const part of selected.value) {
    if (part.value === null || part.value === "" || part.span.start < end) continue;
    const decoded = decodeText(part.value, as);
    if (!decoded.ok) return fail(path.text, decoded.error);
    text += json.text.slice(end, part.span.start) + decoded.value;
    end = part.span.end;
  }
  if (end === 0) return ok(body);
  text += json.text.slice(end);
  const whole = JsonText.parse(text);
  return ok({ ...body, bytes: Buffer.from(text), text, isVerbatim: true, json: whole, value: whole.value });
}

/** Returns the selected values with their places in the body, in the order of the body. */
function selectTexts(json: JsonText, path: Path, budget: PathBudget): Result<readonly JsonText[], Fault> {
  if (path.kind === "singular") {
    const value = path.get(json.value);
    const found = value === undefined ? undefined : json.find(path.targetsIn(json.value), value);
    return ok(found === undefined ? [] : [found]);
  }
  let nodes: readonly PathNode[];
  try {
    nodes = path.select(json.value, budget);
  } catch (error) {
    if (!(error instanceof PathBudgetError)) throw error;
    return err({ reason: "path_budget", path: "decode.path", detail: error.message });
  }
  const found = json.cut(nodes).filter((part) => part !== undefined);
  return ok(found.sort((a, b) => a.span.start - b.span.start));
}

/** Returns the JSON text of the decoded document, or the reason why the value cannot be decoded. */
function decodeText(value: unknown, as: BodyDecoding["as"]): Result<string, string> {
  if (typeof value !== "string") return err(`it selects ${describe(value)} instead of a text`);
  const text = as === "json" ? ok(value) : decodeBase64(value);
  if (!text.ok) return text;
  if (as === "base64") return ok(JSON.stringify(text.value));
  const json = readJson(text.value);
  return json.ok ? ok(text.value) : err(`the text does not contain JSON: ${json.error.detail}`);
}

function decodeBase64(value: string): Result<string, string> {
  const compact = value.replace(/\s/g, "");
  if (!BASE64.test(compact) || compact.replace(/=+$/, "").length % 4 === 1)
    return err("the text is not valid base64");
  try {
    return ok(UTF8.decode(Buffer.from(compact, "base64")));
  } catch {
    return err("the text in base64 does not contain valid UTF-8");
  }
}

function describe(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

const fail = (path: string, reason: string): Result<never, Fault> =>
  err({ ...invalidBody(`decode.path ${path}: ${reason}`), path: "decode.path" });
