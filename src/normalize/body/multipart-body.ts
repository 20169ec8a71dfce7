import { hash } from "node:crypto";
import type { BodyReading } from "../../event/body-reading.ts";
import { collectParts, type FormPart, splitForm } from "../../lib/multipart.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { type Fault, invalidBody } from "../fault.ts";
import type { Body } from "./body.ts";
import { CHARSET_HINT, createCharsetOf } from "./form-charset.ts";
import { JsonText } from "./payload-slice.ts";

/**
 * Reads a form in `multipart/form-data` as the JSON object of its fields and files. The published data is this JSON, because the original
 * bytes are unreadable without the boundary.
 */
export function readMultipart(
  received: Buffer,
  contentType: string,
  { files = "base64", formCharset }: BodyReading,
): Result<Body, Fault> {
  const parts = splitForm(received, contentType);
  if (!parts.ok) return err(invalidBody(`the form is not valid multipart/form-data: ${parts.error}`));
  const file = parts.value.find(
    ({ isFile, bytes, filename }) => isFile && !(bytes.length === 0 && filename === ""),
  );
  if (files === "reject" && file !== undefined) {
    const shown = JSON.stringify(file.name);
    return err(
      invalidBody(
        `this channel accepts no files, but ${shown} is one; to accept it, set the channel's \`files\``,
      ),
    );
  }
  const charsetOf = createCharsetOf(parts.value, contentType, formCharset);
  const fields = collectParts<object>(parts.value, charsetOf, files === "omit" ? omitFile : encodeFile);
  if (!fields.ok) return err(invalidBody(`${fields.error}; ${CHARSET_HINT}`));
  const text = JSON.stringify(fields.value);
  const json = JsonText.parse(text);
  return ok({
    kind: "multipart",
    bytes: Buffer.from(text),
    text,
    isVerbatim: true,
    value: json.value,
    json,
    contentType: "application/json",
  });
}

const describeFile = ({ filename, contentType, bytes }: FormPart) => ({
  filename: filename ?? null,
  contentType: contentType ?? "application/octet-stream",
  size: bytes.length,
});

const encodeFile = (part: FormPart) => ({
  ...describeFile(part),
  data_base64: part.bytes.toString("base64"),
});

/** The hash tells files of the same size apart, so that deliveries with different files are no duplicates. */
const omitFile = (part: FormPart) => ({
  ...describeFile(part),
  sha256: hash("sha256", part.bytes, "hex"),
  omitted: true,
});
