/** How the bytes of a body are to be read, by its `Content-Type`. */
export interface BodyFormat {
  readonly kind: "json" | "form" | "xml" | "ndjson" | "text" | "bytes";
  /** The `charset` parameter in lower case, where there is one. */
  readonly charset?: string;
}

const JSON_FORMAT: BodyFormat = { kind: "json" };

const KINDS: ReadonlyMap<string, BodyFormat["kind"]> = new Map([
  ["application/json", "json"],
  ["text/json", "json"],
  ["application/x-www-form-urlencoded", "form"],
  ["application/xml", "xml"],
  ["text/xml", "xml"],
  ["application/x-ndjson", "ndjson"],
  ["application/ndjson", "ndjson"],
  ["application/jsonl", "ndjson"],
  ["application/x-jsonlines", "ndjson"],
]);

/** The body format that a `Content-Type` asks for; JSON where there is none; undefined (415) for `multipart/*`. */
export function bodyFormatOf(contentType: string | undefined): BodyFormat | undefined {
  if (contentType === undefined || contentType === "application/json") return JSON_FORMAT;
  const end = contentType.indexOf(";");
  const type = (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
  if (type.startsWith("multipart/")) return undefined;
  const kind = kindOf(type);
  const charset = end === -1 ? undefined : charsetOf(contentType.slice(end));
  return charset === undefined ? { kind } : { kind, charset };
}

function kindOf(type: string): BodyFormat["kind"] {
  if (type === "") return "json";
  const kind = KINDS.get(type);
  if (kind !== undefined) return kind;
  if (type.endsWith("+json")) return "json";
  if (type.endsWith("+xml")) return "xml";
  return type.startsWith("text/") ? "text" : "bytes";
}

function charsetOf(parameters: string): string | undefined {
  const match = /;\s*charset\s*=\s*(?:"([^"]*)"|([^;\s"]+))/i.exec(parameters);
  return (match?.[1] ?? match?.[2])?.trim().toLowerCase();
}
