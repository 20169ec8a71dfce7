import type { JsonText } from "./payload-slice.ts";

/** Format of a message body, as declared by a `Content-Type` header. */
export interface BodyFormat {
  readonly kind: "json" | "form" | "multipart" | "xml" | "ndjson" | "text" | "bytes";
  /** Value of the `charset` parameter in lower case, if there is one. */
  readonly charset?: string;
}

export interface Body {
  readonly kind: BodyFormat["kind"];
  readonly bytes: Buffer;
  /** Decoded text. `undefined` for binary bodies (`bytes`) and for an empty body. */
  readonly text: string | undefined;
  /** Whether the received bytes equal `text` encoded as UTF-8. */
  readonly isVerbatim: boolean;
  /**
   * Parsed value, on which paths are evaluated. Forms and XML become JSON values, text and NDJSON stay strings. `undefined` for
   * binary bodies and for an empty body.
   */
  readonly value: unknown;
  /** The JSON text from which `value` was parsed. `undefined` if the body is not JSON. */
  readonly json: JsonText | undefined;
  /** Content type of an event whose data is the whole body (CloudEvents `datacontenttype`). */
  readonly contentType: string;
}
