import type { Fault } from "../fault.ts";

const READ_AS: Readonly<Partial<Record<string, string>>> = {
  form: "a form",
  text: "text",
  bytes: "binary data",
};

/**
 * Adds to a fault that the body looks like JSON, although its content type says otherwise. Many HTTP clients declare a form by default.
 */
export function withFormatHint(fault: Fault, body: { readonly kind: string; readonly bytes: Buffer }): Fault {
  const { kind, bytes } = body;
  const readAs = READ_AS[kind];
  if (readAs === undefined || !looksLikeJson(bytes)) return fault;
  const hint = `the body was read as ${readAs} because of its Content-Type, but looks like JSON: send it as application/json, or set the channel's \`readAs\``;
  return { ...fault, detail: `${fault.detail}; ${hint}`, hint };
}

function looksLikeJson(bytes: Buffer): boolean {
  const start = bytes.toString("latin1", 0, 64).trimStart();
  const end = bytes.toString("latin1", Math.max(0, bytes.length - 64)).trimEnd();
  return (/^\{\s*["}]/.test(start) && end.endsWith("}")) || (start.startsWith("[") && end.endsWith("]"));
}
