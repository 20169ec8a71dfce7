import type { Finding } from "../errors.ts";
import type { Result } from "../result.ts";
import type { SchemaViolation } from "./compiled-schema.ts";
import type { GeneratedCode } from "./generate/generate.ts";

/** Requests of the main thread to a worker, one at a time. */
export type Request =
  | { readonly kind: "compile"; readonly text: string }
  /** Without `code` the worker answers `missing` where it does not hold it. */
  | { readonly kind: "check"; readonly digest: string; readonly code?: string; readonly value: unknown };

/** Answers of the worker; `ready` once, when it has loaded. */
export type Reply =
  | { readonly kind: "ready" }
  | { readonly kind: "compiled"; readonly result: Result<GeneratedCode, readonly Finding[]> }
  | { readonly kind: "checked"; readonly violation: SchemaViolation | undefined }
  | { readonly kind: "missing" };
